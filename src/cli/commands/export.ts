/** `admb export`: a stored predictor as a folder that other programs read. */
import { type Command, Option } from 'commander'
import { LAYOUTS, type LayoutName, layoutFor } from '../../nn/weights/layouts.js'
import { classNamesOf } from '../../task/learning-spec.js'
import { predictorMetadata } from '../../task/predictor-metadata.js'
import { predictorTensors } from '../../task/predictor-tensors.js'
import { UsageError } from '../errors.js'
import { withCommon, withPredictWith } from '../options/options.js'
import { print, printJson } from '../output/output.js'
import { loadStored } from '../training/stored.js'

interface Flags {
  readonly dir?: string
  readonly out: string
  readonly layout?: LayoutName
  readonly predictWith?: 'average' | 'current'
  readonly json?: boolean
}

export function exportCommand(program: Command): Command {
  const command = program.command('export')
  withPredictWith(command, ['average', 'current'] as const)
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

Examples:
  admb export --dir model --out exported
  admb export --dir model --layout admb --out exported --json`
    )
  return withCommon(command).action(exportPredictor)
}

async function exportPredictor({ dir, out, predictWith = 'average', json, ...flags }: Flags): Promise<void> {
  const { spec, predictor, scaling } = await loadStored(dir, undefined)
  const blocks = predictWith === 'current' ? predictor.parameters : predictor.average
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
