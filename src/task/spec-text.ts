/** A learning spec as text: the fields that the handshake compares, and what the state directory stores. */
import { schemaText } from '../data/parsing.js'
import { isLayered } from '../learning/index.js'
import { describeTuning, networkName, networkText, tokenizerName } from '../nn/spec/network-spec.js'
import { recipeOf } from './learning-parts.js'
import { type FeatureSpec, isCustomLoss, type LearningSpec, targetScaleOf, weightsOf } from './learning-spec.js'
import { batchRange } from './option-values.js'

/** The fields that both ends of a session compare, named like the options that set them, the most telling first. */
export function learningSpecFields(spec: LearningSpec): [field: string, value: string][] {
  const recipe = recipeOf(spec)
  const { features } = spec
  const scale = targetScaleOf(spec)
  const text = spec.network?.text
  const { weights } = weightsOf(spec)
  return [
    ...(text === undefined ? [] : [['tokenizer', tokenizerName(text)] as [string, string]]),
    ['class-names', (features.classNames ?? []).join(',')],
    ['columns', schemaText(features.columns ?? [])],
    ...startFields(spec),
    ...programFields(spec),
    ['model', spec.network ? networkName(spec.network) : spec.model],
    ['dimension', String(spec.dimension)],
    ['classes', String(spec.classes ?? '')],
    ['hash-bits', String(features.hashBits ?? '')],
    ...(features.interactions === undefined
      ? []
      : [['interactions', interactionsText(features.interactions)] as [string, string]]),
    ['constant', String(features.constant)],
    ['scale', features.scale],
    ['batch', batchText(spec)],
    ['sums', spec.sums ?? 'exact'],
    ['local-steps', String(spec.localSteps ?? '')],
    ...(spec.algorithm === undefined ? [] : [['algorithm', spec.algorithm] as [string, string]]),
    ...(spec.localMomentum === undefined ? [] : [['local-momentum', String(spec.localMomentum)] as [string, string]]),
    ...(spec.sumBytes === undefined ? [] : [['sum-bytes', String(spec.sumBytes)] as [string, string]]),
    ...(spec.influence === undefined ? [] : [['influence', spec.influence] as [string, string]]),
    ['rule', recipe.rule.description],
    ['average', recipe.averaging.description],
    ['l2', String(spec.l2 ?? 0)],
    ...(scale === undefined ? [] : [['target-scale', `${scale.mean}:${scale.deviation}`] as [string, string]]),
    ...(weights === undefined ? [] : [['class-weights', pairs(weights)] as [string, string]]),
    ...(spec.plugins === undefined ? [] : [['plugins', spec.plugins] as [string, string]])
  ]
}

/** What a network starts from, and what of it is trained. */
function startFields({ network }: LearningSpec): [field: string, value: string][] {
  if (network?.weights === undefined) return []
  const { freeze, lora } = describeTuning(network.tuning ?? {})
  return [
    ['weights', network.weights],
    ['freeze', freeze],
    ['lora', lora]
  ]
}

/** As in the option. */
function interactionsText(interactions: NonNullable<FeatureSpec['interactions']>): string {
  return interactions === 'all' ? interactions : interactions.map(pair => pair.join(':')).join(',')
}

/** What programs must have in common. */
function programFields(spec: LearningSpec): [field: string, value: string][] {
  if (spec.model !== 'external') return []
  const { blocks, start, fingerprint } = spec.program
  return [
    ['program', fingerprint],
    ['parameters', blocks.map(({ name, length }) => `${name}:${length}`).join(',')],
    ['start', start]
  ]
}

/** As in the option: a number, or MIN..MAX. */
function batchText({ batch, batchMax }: LearningSpec): string {
  return batchMax === undefined ? String(batch) : `${batch}..${batchMax}`
}

function pairs(weights: Readonly<Record<string, number>>): string {
  return Object.entries(weights)
    .map(([name, weight]) => `${name}=${weight}`)
    .join(',')
}

/** The spec as canonical text for the state directory: equal for equal specs. */
export function specText(spec: LearningSpec): string {
  const { model, network, dimension, classes, classWeights, l2, rule, averaging } = spec
  const { sums, algorithm, localSteps, localMomentum, sumBytes, influence, features, plugins } = spec
  const target = isCustomLoss(spec) ? spec.target : undefined
  // A network has its own.
  const targetScale = spec.network === undefined ? targetScaleOf(spec) : undefined
  const { constant, hashBits, interactions, columns, label, scale, classNames } = features
  const sorted = (object: object) => Object.fromEntries(Object.entries(object).sort(([a], [b]) => (a < b ? -1 : 1)))
  return JSON.stringify({
    model,
    target,
    network: network && JSON.parse(networkText(network)),
    program: spec.model === 'external' ? spec.program : undefined,
    dimension,
    classes,
    classWeights,
    l2: l2 || undefined,
    targetScale: targetScale && { mean: targetScale.mean, deviation: targetScale.deviation },
    rule: sorted(
      isLayered(rule) ? { ...rule, rules: rule.rules.map(one => ({ ...one, rule: sorted(one.rule) })) } : rule
    ),
    averaging: sorted(averaging),
    batch: spec.batchMax === undefined ? spec.batch : batchText(spec),
    sums,
    algorithm,
    localSteps,
    localMomentum,
    sumBytes,
    influence,
    features: { constant, hashBits, interactions, columns, label, scale, classNames },
    plugins
  })
}

/** The inverse of `specText`. */
export function parseSpec(text: string): LearningSpec {
  const spec = JSON.parse(text)
  if (typeof spec.batch !== 'string') return spec
  const { min: batch, max: batchMax } = batchRange(spec.batch)
  return { ...spec, batch, batchMax }
}
