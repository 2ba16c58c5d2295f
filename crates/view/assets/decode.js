// Packed columns become typed arrays. Numbers are of variable length: seven bits in each octet, the lowest first, and bit 7
// where more follow. Beyond 32 bits bit operations no longer do, so that the upper part is added as a product.

const KINDS = { u8: Uint8Array, u32: Uint32Array, f64: Float64Array };

/** The octets of a text in base64. */
function fromBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const plain = atob(text);
  const octets = new Uint8Array(plain.length);
  for (let i = 0; i < plain.length; i += 1) octets[i] = plain.charCodeAt(i);
  return octets;
}

/** What zlib has packed. */
async function inflate(octets) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("This browser cannot unpack the page's data: it has no DecompressionStream. Browsers since 2023 do.");
  }
  const stream = new Blob([octets]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** One column, from `place` on. */
function readColumn(column, octets, place) {
  const numbers = new KINDS[column.kind](column.rows);
  const end = place + column.octets;
  let before = 0;
  let row = 0;
  while (place < end && row < column.rows) {
    let octet = octets[place];
    let number = octet & 0x7f;
    place += 1;
    let scale = 128;
    while (octet > 0x7f && place < end) {
      octet = octets[place];
      place += 1;
      number += (octet & 0x7f) * scale;
      scale *= 128;
    }
    if (column.differences) {
      // Folded: odd ones are negative.
      before += number % 2 === 1 ? -(number + 1) / 2 : number / 2;
      number = before;
    }
    numbers[row] = number;
    row += 1;
  }
  if (place !== end || row !== column.rows) throw new Error(`The page is damaged: column ${column.name} is not whole.`);
  return numbers;
}

/** All tables, each an object of columns and `rows`. */
function readTables(columns, octets) {
  const tables = {};
  let place = 0;
  for (const column of columns) {
    const [table, name] = column.name.split(".");
    tables[table] ??= { rows: column.rows };
    tables[table][name] = readColumn(column, octets, place);
    place += column.octets;
  }
  if (place !== octets.length) throw new Error("The page is damaged: its data are not as long as they should be.");
  return tables;
}
