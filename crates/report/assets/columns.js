// Columns of numbers as they lie in the page: little-endian typed arrays in
// base64, which a browser reads ten times faster than JSON and which take a
// third of the room.

/**
 * A column in the page.
 * @typedef {{f32: string} | {u32: string} | number[]} Column
 */

/**
 * The numbers of a column.
 * @param {Column} column
 * @returns {ArrayLike<number>}
 */
export function numbers(column) {
  if (Array.isArray(column)) return column;
  const text = 'f32' in column ? column.f32 : column.u32;
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return 'f32' in column ? new Float32Array(bytes.buffer) : new Uint32Array(bytes.buffer);
}

/**
 * The same with gaps: what is not a number is null, which a chart leaves out.
 * @param {Column} column
 * @returns {Array<number | null>}
 */
export function gapped(column) {
  return Array.from(numbers(column), (value) => (Number.isFinite(value) ? value : null));
}
