/** `--weights` of a state directory: a copy of its predictor as a file that checkpoints are read from. */
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { predictorTensors } from '../../task/predictor-metadata.js'
import { UsageError } from '../errors.js'
import { loadStored, metadataOf } from './stored.js'

/**
 * The flags with a path that can be read. The copy of a state directory is removed when the process ends.
 * @throws UsageError if the directory lacks the frozen weights of its network; errors of the store
 */
export async function withReadableWeights<Flags extends { readonly weights?: string }>(flags: Flags): Promise<Flags> {
  const { weights } = flags
  if (weights === undefined || !existsSync(join(weights, 'admb.json'))) return flags
  const stored = await loadStored(weights, undefined)
  const { spec, predictor } = stored
  if (spec.network?.tuning !== undefined) {
    throw new UsageError(
      `${weights} holds only what was trained of a network: export it first (admb export --dir ${weights} --weights PATH --out FOLDER)`
    )
  }
  const { writeWeights } = await import('../../nn/weights/write-checkpoint.js')
  const folder = mkdtempSync(join(tmpdir(), 'admb-weights-'))
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  writeWeights(
    folder,
    await predictorTensors(spec, predictor.average),
    metadataOf(stored, predictor.average, 'average')
  )
  return { ...flags, weights: folder }
}
