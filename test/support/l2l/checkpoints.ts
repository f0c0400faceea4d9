/** The checkpoints that `scripts/reference/transformers_fixtures.py` has made, with what `transformers` computes from them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const CHECKPOINTS = fileURLToPath(new URL('../../../../test/fixtures/models/', import.meta.url))

export interface Reference {
  /** Tokens per row. */
  readonly length: number
  /** Pairs of texts, or one text. */
  readonly texts?: readonly (readonly string[])[]
  readonly text?: string
  /** Tokens. */
  readonly rows: readonly (readonly number[])[]
  readonly labels?: readonly number[]
  readonly logits: readonly unknown[]
  /** Before each of three steps, and after them. */
  readonly losses: readonly number[]
  /** Of AdamW. */
  readonly step: number
  readonly decay: number
  /** The most probable tokens after the first four of the first row. */
  readonly greedy?: readonly number[]
}

export function referenceOf(name: string): Reference & { readonly folder: string } {
  const folder = join(CHECKPOINTS, name)
  return { folder, ...JSON.parse(readFileSync(join(folder, 'reference.json'), 'utf8')) }
}
