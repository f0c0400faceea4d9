/** Divides a JSON document of inputs into lines without reading its values, so that numbers keep all of their digits. */

const NEWLINE = 0x0a
const RETURN = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const BACKSLASH = 0x5c

/** @param document valid JSON: an object, or an array of objects @returns an object on each line */
export function jsonLines(document: Uint8Array): Buffer {
  const lines = Buffer.alloc(document.length + 1)
  let length = 0
  let depth = 0
  let isString = false
  // The depth of the members of an array of inputs.
  let outer = -1
  for (let i = 0; i < document.length; i++) {
    const byte = document[i]
    if (isString) {
      lines[length++] = byte
      if (byte === BACKSLASH) lines[length++] = document[++i]
      else if (byte === QUOTE) isString = false
      continue
    }
    if (byte === QUOTE) isString = true
    const isOpening = byte === 0x7b || byte === 0x5b
    const isClosing = byte === 0x7d || byte === 0x5d
    if (isOpening && depth++ === 0 && byte === 0x5b) {
      outer = 1
      continue
    }
    if (isClosing && --depth === 0 && outer === 1) continue
    const isEnd = byte === COMMA && depth === outer
    lines[length++] = isEnd ? NEWLINE : byte === NEWLINE || byte === RETURN ? SPACE : byte
  }
  lines[length++] = NEWLINE
  return lines.subarray(0, length)
}
