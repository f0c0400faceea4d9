/** Formats that are not read, with how to convert them: known by a file's name, or by its first bytes. */
import { UnknownFormatError } from './errors.js'

interface Unsupported {
  readonly what: string
  /** Ending of the file's name. */
  readonly name?: RegExp
  /** First bytes. */
  readonly magic?: readonly number[]
  /** Replaces FILE by the path. */
  readonly remedy: string
}

const UNSUPPORTED: readonly Unsupported[] = [
  {
    what: 'Arrow',
    name: /\.(arrow|feather)$/,
    magic: [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31],
    remedy: 'convert it to Parquet or CSV'
  },
  { what: 'an Excel workbook', name: /\.xlsx?$/, remedy: 'save it as CSV (UTF-8)' },
  { what: 'one JSON document', name: /\.json$/, remedy: "convert it to JSON lines: jq -c '.[]' FILE > data.jsonl" },
  { what: 'a zip archive', name: /\.zip$/, magic: [0x50, 0x4b, 0x03, 0x04], remedy: 'unpack it: unzip FILE' },
  { what: 'bzip2', name: /\.bz2$/, magic: [0x42, 0x5a, 0x68], remedy: 'unpack it: bunzip2 FILE' },
  { what: 'xz', name: /\.xz$/, magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], remedy: 'unpack it: unxz FILE' }
]

/** The error for a file with such a name; undefined if it may be supported. */
export function unsupportedName(path: string): string | undefined {
  const found = UNSUPPORTED.find(({ name }) => name?.test(path.toLowerCase()))
  return found && message(found, path)
}

/** @throws UnknownFormatError if the first bytes are those of a format that is not read */
export function refuseUnsupported(first: Uint8Array, source: string): void {
  const found = UNSUPPORTED.find(({ magic }) => magic?.every((byte, index) => first[index] === byte))
  if (found !== undefined) throw new UnknownFormatError(message(found, source))
  // The last newline may be one that the reader has added.
  const newline = first.indexOf(0x0a)
  if (
    newline >= first.length - 1 &&
    first.subarray(0, newline).includes(0x0d, 0) &&
    first.indexOf(0x0d) < newline - 1
  ) {
    throw new UnknownFormatError(
      `${source}: the lines end in carriage returns alone: convert them: tr '\\r' '\\n' < FILE`
    )
  }
}

function message({ what, remedy }: Unsupported, path: string): string {
  return `${path} is ${what}, which is not read: ${remedy.replace('FILE', path)}`
}
