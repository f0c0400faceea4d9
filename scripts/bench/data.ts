/** Data for benchmarks: public data, which are not part of the repository, and synthetic rows. */
import { existsSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { gunzipSync } from 'node:zlib'
import { Random } from '../../src/streams/random.js'

/** Public data beside the repository. */
export const DATA_FOLDER = new URL('../../../../shared/data/', import.meta.url)

/** The path of the file, or undefined, with a message on stderr, if it is missing. */
export function publicData(name: string): string | undefined {
  const path = fileURLToPath(new URL(name, DATA_FOLDER))
  if (existsSync(path)) return path
  process.stderr.write(`bench: skipped, because ../shared/data/${name} is missing\n`)
  return undefined
}

/** The text of tinyshakespeare, or undefined if it is missing. */
export function shakespeare(): string | undefined {
  const path = publicData('tinyshakespeare.txt.gz')
  return path && gunzipSync(readFileSync(path)).toString('utf8')
}

/** Rows like those of a9a: labels −1 and 1, and 14 of 123 feature numbers in ascending order. */
export function syntheticRows(count: number): { label: number; features: number[] }[] {
  const random = new Random(1)
  return Array.from({ length: count }, () => {
    const features = Array.from({ length: 14 }, (_, group) =>
      Math.min(123, 1 + 9 * group - (group >> 1) + random.below(8))
    )
    return { label: random.below(4) === 0 ? 1 : -1, features }
  })
}

/** Synthetic rows as LIBSVM text. */
export function syntheticLibsvm(count: number): Buffer {
  const lines = syntheticRows(count).map(
    ({ label, features }) => `${label > 0 ? '+1' : '-1'} ${features.map(feature => `${feature}:1`).join(' ')} \n`
  )
  return Buffer.from(lines.join(''))
}
