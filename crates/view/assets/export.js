// Charts as files: a pen that writes SVG instead of drawing, and downloads that need no server.

const escapeXml = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const short = (number) => String(Math.round(number * 100) / 100);

/** The part of a canvas's context that charts use, as SVG. */
class SvgPen {
  constructor(width, height) {
    [this.width, this.height] = [width, height];
    this.parts = [];
    this.path = [];
    this.clips = 0;
    // How many groups are open, for each state that was saved.
    this.open = [0];
    this.dash = [];
    this.measure = document.createElement("canvas").getContext("2d");
    Object.assign(this, { font: "11px sans-serif", textAlign: "left", fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1 });
  }

  text() {
    const head = `<svg xmlns="http://www.w3.org/2000/svg" width="${this.width}" height="${this.height}" viewBox="0 0 ${this.width} ${this.height}">`;
    return `${head}\n${this.parts.join("\n")}\n</svg>\n`;
  }

  group(attributes) {
    this.parts.push(`<g ${attributes}>`);
    this.open[this.open.length - 1] += 1;
  }

  save() {
    this.open.push(0);
  }

  restore() {
    this.parts.push("</g>".repeat(this.open.pop()));
  }

  translate(x, y) {
    this.group(`transform="translate(${short(x)} ${short(y)})"`);
  }

  rotate(angle) {
    this.group(`transform="rotate(${short((angle * 180) / Math.PI)})"`);
  }

  clip() {
    this.clips += 1;
    this.parts.push(`<clipPath id="clip${this.clips}"><path d="${this.path.join("")}"/></clipPath>`);
    this.group(`clip-path="url(#clip${this.clips})"`);
  }

  beginPath() {
    this.path = [];
  }

  moveTo(x, y) {
    this.path.push(`M${short(x)} ${short(y)}`);
  }

  lineTo(x, y) {
    this.path.push(`L${short(x)} ${short(y)}`);
  }

  closePath() {
    this.path.push("Z");
  }

  rect(x, y, width, height) {
    this.path.push(`M${short(x)} ${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`);
  }

  /** A whole circle, which is all that shapes need. */
  arc(x, y, r) {
    const half = `a${short(r)} ${short(r)} 0 1 0 `;
    this.path.push(`M${short(x + r)} ${short(y)}${half}${short(-2 * r)} 0${half}${short(2 * r)} 0`);
  }

  setLineDash(dash) {
    this.dash = dash;
  }

  stroke() {
    const dash = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    this.draw(`fill="none" stroke="${this.strokeStyle}" stroke-width="${this.lineWidth}"${dash}`);
  }

  fill() {
    this.draw(`fill="${this.fillStyle}"`);
  }

  draw(attributes) {
    const alpha = this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : "";
    if (this.path.length > 0) this.parts.push(`<path d="${this.path.join("")}" ${attributes}${alpha}/>`);
  }

  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }

  fillText(text, x, y) {
    const [, weight = "400", size] = this.font.match(/^(\d+ )?(\d+)px/) ?? [];
    const anchor = { left: "start", center: "middle", right: "end" }[this.textAlign];
    const style = `font-family="system-ui, sans-serif" font-size="${size}" font-weight="${weight.trim()}" text-anchor="${anchor}"`;
    this.parts.push(`<text x="${short(x)}" y="${short(y)}" fill="${this.fillStyle}" ${style}>${escapeXml(text)}</text>`);
  }
}

/** One row of CSV (RFC 4180). */
function csvRow(fields) {
  return fields.map((field) => (/[",\r\n]/.test(field) ? `"${String(field).replaceAll('"', '""')}"` : field)).join(",");
}

/**
 * A name for a file: of a run's name, which may be any text, only letters, digits and dashes are
 * left.
 */
function fileName(run, chart, ending) {
  const plain = run.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-+|-+$/g, "").slice(0, 60);
  return `${plain || "run"}-${chart}.${ending}`;
}

/** Saves a text as a file. */
function download(name, type, text) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  // The browser has the file once the click is over; some begin a little later.
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
