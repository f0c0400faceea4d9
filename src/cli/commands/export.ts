/** `admb export`: a stored predictor as files that other programs read. */
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { fileProblem } from '../../base/errors.js'
import { openStream } from '../../data/index.js'
import { layoutFor } from '../../nn/weights/layouts.js'
import { readableSpec } from '../../task/learning-parts.js'
import type { LearningSpec } from '../../task/learning-spec.js'
import { predictorTensors } from '../../task/predictor-metadata.js'
import { checkFits, streamFor } from '../../task/stream.js'
import { UsageError } from '../errors.js'
import { FeatureNames } from '../explain/weights.js'
import { type LinearModel, writeJson } from '../linear/formats.js'
import { add } from '../options/command.js'
import type { Flags } from '../options/table.js'
import { print, printJson } from '../output/output.js'
import { loadStored, metadataOf, type Stored, withReadableWeights } from '../training/stored.js'

export function exportCommand(program: Command): Command {
  return add(
    program,
    'export',
    {
      help: `Layouts other than admb are Hugging Face folders: AutoModel.from_pretrained has
the same outputs. Layout admb is for any model: model.safetensors with the names
of the documents on models and the metadata of GET /predictor. --weights reads
both, and the format json of linear models. A model with frozen layers or
adapters needs --weights: they are merged. Format onnx has the scaling of
numbers and the class names in the graph, and the metadata of admb.

Examples:
  admb export --dir model --out exported
  admb export --dir model --layout admb --out exported --json
  admb export --dir model --format onnx --out model.onnx
  admb export --dir model --format json --data mine.csv --out weights.json`
    },
    exportPredictor
  )
}

/** The network with its frozen weights. */
async function whole(
  spec: LearningSpec,
  blocks: readonly Float32Array[],
  weights: string | undefined
): Promise<{ readonly spec: LearningSpec; readonly blocks: readonly Float32Array[] }> {
  const { network } = spec
  if (network?.tuning === undefined) {
    if (weights !== undefined) throw new UsageError('the directory holds all weights of its model: remove --weights')
    return { spec, blocks }
  }
  const { wholeBlocks, wholeNetwork } = await import('../../l2l/index.js')
  const merged = wholeBlocks(network, blocks, weights)
  return { spec: { ...spec, network: wholeNetwork(network) } as LearningSpec, blocks: merged }
}

async function exportPredictor(given: Flags<'export'>): Promise<void> {
  const flags = await withReadableWeights(given)
  const { dir, out, format, layout, json } = flags
  const stored = await loadStored(dir, undefined)
  const { id } = stored.predictor
  if (flags.data !== undefined && format !== 'json') {
    throw new UsageError('--data names the features of format json: remove it')
  }
  if (format === 'safetensors') {
    const written = await writeFolder(stored, flags)
    if (json) printJson({ command: 'export', ...written, predictor: id })
    else print(`written to ${out}: ${written.files.join(', ')}`)
    return
  }
  if (layout !== undefined) throw new UsageError(`--layout is for safetensors: remove it with --format ${format}`)
  writeNew(out, await (format === 'onnx' ? onnxOf : linearJson)(stored, flags))
  if (json) printJson({ command: 'export', format, files: [out], predictor: id })
  else print(`written to ${out}`)
}

async function writeFolder(stored: Stored, { out, weights, predictWith = 'average', ...flags }: Flags<'export'>) {
  const { predictor } = stored
  const serving = predictWith === 'current' ? predictor.parameters : predictor.average
  const { spec, blocks } = await whole(stored.spec, serving, weights)
  const layout = flags.layout ?? (spec.network ? layoutFor(spec.network.layers) : 'admb')
  const [{ writeNetwork, writeWeights }, { networkModel }] = await Promise.all([
    import('../../nn/weights/write-checkpoint.js'),
    import('../../l2l/index.js')
  ])
  if (layout === 'admb') {
    const metadata = metadataOf({ ...stored, spec }, predictor.parameters, predictWith)
    return { layout, files: writeWeights(out, await predictorTensors(spec, blocks), metadata) }
  }
  if (spec.network === undefined) {
    throw new UsageError(`layout ${layout} is for networks, and this model is ${spec.model}: give --layout admb`)
  }
  return { layout, files: writeNetwork(out, { spec: spec.network, model: networkModel(spec.network), blocks }, layout) }
}

async function onnxOf({ spec: stored, predictor, scaling }: Stored, flags: Flags<'export'>): Promise<Uint8Array> {
  const serving = flags.predictWith ?? 'average'
  const served = serving === 'current' ? predictor.parameters : predictor.average
  const { spec, blocks } = await whole(stored, served, flags.weights)
  const moments = spec.features.scale === 'standard' ? scaling.moments.save() : undefined
  const { onnxModel } = await import('../../task/onnx.js')
  const source = { spec, blocks, updates: predictor.id.updates, moments }
  return onnxModel(source, { predictor: JSON.stringify(predictor.id), serving })
}

/** The weights of a linear model. */
async function linearJson(stored: Stored, flags: Flags<'export'>): Promise<string> {
  const { predictor, scaling } = stored
  const spec = readableSpec(stored.spec, predictor.parameters)
  if (flags.weights !== undefined) throw new UsageError('--weights is for networks: remove it')
  if (spec.network !== undefined) {
    throw new UsageError('json is for linear models, and this one is a network: give --format safetensors')
  }
  const [weights] = flags.predictWith === 'current' ? predictor.parameters : predictor.average
  const { classNames } = spec.features
  const width = weights.length / spec.dimension
  const names = await namesOf(spec, flags)
  return writeJson({
    spec: stored.spec as LinearModel['spec'],
    id: predictor.id,
    weights,
    // Classes that are not known yet have no weights.
    outputs: width === 1 ? 1 : Math.min(width, classNames?.length ?? width),
    classNames,
    moments: spec.features.scale === 'standard' ? scaling.moments.save() : undefined,
    nameOf: feature => (names.isConstant(feature) ? 'constant' : names.nameOf(feature))
  })
}

function writeNew(out: string, content: string | Uint8Array): void {
  try {
    writeFileSync(out, content, { flag: 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST') throw new UsageError(`${out} already exists and is not overwritten: give another --out`)
    throw new UsageError(`cannot write ${out} (${fileProblem(error)}): check the path after --out`)
  }
}

/** Names of features, with those of the rows of `--data`. */
async function namesOf(spec: LearningSpec, flags: Flags<'export'>): Promise<FeatureNames> {
  const names = new FeatureNames(spec.features)
  if (flags.data !== undefined) {
    const stream = await openStream({
      ...streamFor(spec, { data: flags.data }),
      unlabelled: true,
      onHashed: names.note,
      onMalformed: () => undefined
    })
    checkFits(spec, stream)
    for await (const _ of stream) {
      // Its values are noted.
    }
  }
  return names
}
