// Colours as the style has them, shapes, and canvases that are as fine as the screen.

const COLOURS = ["page", "panel", "ink", "soft", "line", "grid", "data", "ack", "again", "other", "lost", "node", "mark"];
const theme = {};
const dark = matchMedia("(prefers-color-scheme: dark)");
const still = matchMedia("(prefers-reduced-motion: reduce)");

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  for (const name of COLOURS) theme[name] = style.getPropertyValue(`--${name}`).trim();
}

/** What kinds of packets there are, with their colours and shapes. */
const PACKETS = [
  { name: "data", colour: "data", shape: "disc" },
  { name: "acknowledgement", colour: "ack", shape: "diamond" },
  { name: "sent again, or from a cache", colour: "again", shape: "triangle" },
  { name: "other", colour: "other", shape: "square" },
];

/** Which kind a packet is. */
function kindOf(packets, packet) {
  const flags = packets.flags[packet];
  if (!(flags & TCP)) return 3;
  if (packets.again[packet] || (packets.maker[packet] && !(flags & FRAGMENT))) return 2;
  return packets.len[packet] > 0 ? 0 : 1;
}

/** Adds a shape to the path of `pen`. */
function shape(pen, name, x, y, r) {
  if (name === "disc") {
    pen.moveTo(x + r, y);
    pen.arc(x, y, r, 0, 2 * Math.PI);
  } else if (name === "diamond") {
    pen.moveTo(x, y - r);
    pen.lineTo(x + r, y);
    pen.lineTo(x, y + r);
    pen.lineTo(x - r, y);
    pen.closePath();
  } else if (name === "triangle") {
    pen.moveTo(x, y - r * 1.15);
    pen.lineTo(x + r * 1.1, y + r * 0.85);
    pen.lineTo(x - r * 1.1, y + r * 0.85);
    pen.closePath();
  } else if (name === "cross") {
    pen.moveTo(x - r, y - r);
    pen.lineTo(x + r, y + r);
    pen.moveTo(x + r, y - r);
    pen.lineTo(x - r, y + r);
  } else {
    pen.rect(x - r * 0.85, y - r * 0.85, r * 1.7, r * 1.7);
  }
}

/** Makes a canvas as fine as the screen; its pen, and its width and height in CSS pixels. */
function fit(canvas) {
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  const scale = Math.min(window.devicePixelRatio || 1, 2);
  const [w, h] = [Math.max(1, Math.round(width * scale)), Math.max(1, Math.round(height * scale))];
  if (canvas.width !== w || canvas.height !== h) {
    canvas.width = w;
    canvas.height = h;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(scale, 0, 0, scale, 0, 0);
  return { pen, width, height };
}

/** A canvas with one shape on it, for legends. */
function sample(colour, name) {
  const canvas = document.createElement("canvas");
  canvas.width = 32;
  canvas.height = 32;
  canvas.setAttribute("aria-hidden", "true");
  canvas.paint = () => {
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, 32, 32);
    pen.beginPath();
    pen.fillStyle = theme[colour];
    pen.strokeStyle = theme[colour];
    pen.lineWidth = 4;
    shape(pen, name, 16, 16, 10);
    if (name === "cross") pen.stroke();
    else pen.fill();
  };
  canvas.paint();
  return canvas;
}

/** A canvas with a line on it, for legends. */
function sampleLine(colour, dash) {
  const canvas = document.createElement("canvas");
  canvas.className = "line";
  canvas.width = 60;
  canvas.height = 28;
  canvas.setAttribute("aria-hidden", "true");
  canvas.paint = () => {
    const pen = canvas.getContext("2d");
    pen.clearRect(0, 0, 60, 28);
    pen.strokeStyle = theme[colour];
    pen.lineWidth = 4;
    pen.setLineDash(dash.map((length) => length * 2));
    pen.beginPath();
    pen.moveTo(0, 14);
    pen.lineTo(60, 14);
    pen.stroke();
  };
  canvas.paint();
  return canvas;
}

const tip = document.getElementById("tip");

/** Shows details beside the pointer; hides them if there are none. */
function explain(event, text) {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  const { width, height } = tip.getBoundingClientRect();
  const x = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4));
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 16;
  tip.style.transform = `translate(${x}px, ${Math.max(4, y)}px)`;
}
