/** Reports malformed inputs on stderr: the first few by line and column; the rest are only counted. */
import type { Malformed } from '../../streams/index.js'

const MOST_LINES = 10

/** @returns the handler for a stream's `onMalformed` */
export function malformedLines(): (malformed: Malformed) => void {
  let told = 0
  return ({ source, line, column, reason }) => {
    if (told === MOST_LINES) return
    process.stderr.write(`${source}:${line}:${column}: ${reason}\n`)
    if (++told === MOST_LINES) process.stderr.write('further malformed inputs are only counted\n')
  }
}
