/** `admb export`: a stored predictor as a folder that other programs read. */
import { type Command, Option } from 'commander'
import { LAYOUTS, type LayoutName, layoutFor } from '../../nn/weights/layouts.js'
import { classNamesOf, type LearningSpec } from '../../task/learning-spec.js'
import { predictorMetadata } from '../../task/predictor-metadata.js'
import { predictorTensors } from '../../task/predictor-tensors.js'
import { UsageError } from '../errors.js'
import { withWeights } from '../options/networks.js'
import { withCommon, withPredictWith } from '../options/options.js'
import { print, printJson } from '../output/output.js'
import { loadStored } from '../training/stored.js'
import { withReadableWeights } from '../training/stored-weights.js'

interface Flags {
  readonly dir?: string
  readonly out: string
  readonly layout?: LayoutName
  readonly weights?: string
  readonly predictWith?: 'average' | 'current'
  readonly json?: boolean
}

export function exportCommand(program: Command): Command {
  const command = program.command('export')
  withPredictWith(withWeights(command), ['average', 'current'] as const)
    .option('--dir <dir>', 'directory of the stored predictor')
    .requiredOption('--out <folder>', 'new folder')
    .addOption(
      new Option('--layout <name>', "names of the tensors (default: the model's, or admb)").choices([...LAYOUTS])
    )
    .addHelpText(
      'after',
      `
Layouts other than admb are Hugging Face folders: AutoModel.from_pretrained has
the same outputs. Layout admb is for any model: model.safetensors with the names
of docs/models.md and metadata as of GET /predictor. --weights reads them all.
A model with frozen layers or adapters needs --weights: they are merged.

Examples:
  admb export --dir model --out exported
  admb export --dir model --layout admb --out exported --json`
    )
  return withCommon(command).action(exportPredictor)
}

/** The network with its frozen weights. */
async function whole(
  spec: LearningSpec,
  blocks: readonly Float32Array[],
  { weights }: Pick<Flags, 'weights'>
): Promise<{ readonly spec: LearningSpec; readonly blocks: readonly Float32Array[] }> {
  const { network } = spec
  if (network?.tuning === undefined) {
    if (weights !== undefined) throw new UsageError('the directory holds all weights of its model: leave --weights out')
    return { spec, blocks }
  }
  const { wholeBlocks, wholeNetwork } = await import('../../l2l/index.js')
  const merged = wholeBlocks(network, blocks, weights)
  return { spec: { ...spec, network: wholeNetwork(network) } as LearningSpec, blocks: merged }
}

async function exportPredictor(given: Flags): Promise<void> {
  const { dir, out, predictWith = 'average', json, ...flags } = await withReadableWeights(given)
  const { spec: stored, predictor, scaling } = await loadStored(dir, undefined)
  const serving = predictWith === 'current' ? predictor.parameters : predictor.average
  const { spec, blocks } = await whole(stored, serving, flags)
  const layout = flags.layout ?? (spec.network ? layoutFor(spec.network.layers) : 'admb')
  const [{ writeNetwork, writeWeights }, { networkModel }] = await Promise.all([
    import('../../nn/weights/write-checkpoint.js'),
    import('../../l2l/index.js')
  ])
  let files: readonly string[]
  if (layout === 'admb') {
    const moments = spec.features.scale === 'standard' ? scaling.moments.save() : undefined
    const metadata = {
      predictor: JSON.stringify(predictor.id),
      serving: predictWith,
      ...predictorMetadata(spec, moments, classNamesOf(spec, predictor.parameters))
    }
    files = writeWeights(out, await predictorTensors(spec, blocks), metadata)
  } else if (spec.network === undefined) {
    throw new UsageError(`layout ${layout} is for networks, and this model is ${spec.model}: give --layout admb`)
  } else files = writeNetwork(out, { spec: spec.network, model: networkModel(spec.network), blocks }, layout)
  if (json) printJson({ command: 'export', layout, files, predictor: predictor.id })
  else print(`written to ${out}: ${files.join(', ')}`)
}
