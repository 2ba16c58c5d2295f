// Room for text on the map: names and labels stand where they cover no node, no link and no other
// text.

/** Whether two boxes, each left, top, right and bottom, have nothing in common. */
function apart(a, b) {
  return a[0] > b[2] || a[2] < b[0] || a[1] > b[3] || a[3] < b[1];
}

/** Whether a line from one point to another has a part in a box (Liang and Barsky, 1984). */
function crosses([x, y, toX, toY], box) {
  let [first, last] = [0, 1];
  const [dx, dy] = [toX - x, toY - y];
  for (const [step, room] of [[-dx, x - box[0]], [dx, box[2] - x], [-dy, y - box[1]], [dy, box[3] - y]]) {
    if (step === 0) {
      if (room < 0) return false;
    } else if (step < 0) {
      first = Math.max(first, room / step);
    } else {
      last = Math.min(last, room / step);
    }
  }
  return first <= last;
}

/** A box around a point. */
function around(x, y, across, down = across) {
  return [x - across, y - down, x + across, y + down];
}

class Room {
  constructor(width, height) {
    this.edge = [0, 0, width, height];
    // Boxes of nodes and text, boxes that text should rather leave free, and lines.
    this.taken = [];
    this.wanted = [];
    this.lines = [];
  }

  inside(box) {
    return box[0] >= this.edge[0] && box[1] >= this.edge[1] && box[2] <= this.edge[2] && box[3] <= this.edge[3];
  }

  /**
   * The first of these boxes that is free; with `strict`, no line and nothing wanted is in it
   * either. Takes it.
   */
  take(boxes, strict) {
    const found = boxes.find((box) => this.inside(box)
      && this.taken.every((other) => apart(other, box))
      && (!strict || (this.wanted.every((other) => apart(other, box)) && !this.lines.some((line) => crosses(line, box)))));
    if (found) this.taken.push(found);
    return found;
  }
}
