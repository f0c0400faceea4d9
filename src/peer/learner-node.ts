/** The node of a learner thread: which extensions of ADMB it uses follows from the peer's options. */
import { AdmbNode, type Predictor, quotaOf, startingPredictor } from '../admb/index.js'
import { isCustomFormat } from '../data/parsing.js'
import { addNoise, type Blocks, extendsTable, type Learner, LossGate } from '../learning/index.js'
import { createHeaderSigner } from '../network/signatures.js'
import type { LearningParts } from '../task/learning-parts.js'
import { DOWNLOAD_BYTES } from './predictor-parts.js'
import { gaussian, type PrivacyBudget } from './privacy-budget.js'
import type { LearnerInit } from './thread-messages.js'

/** Approximate size of a fragment. Larger vectors of a frame are sent ahead of it in fragments. */
const FRAGMENT_BYTES = 1 << 20

const HOUR_MS = 3_600_000

/** Whether all inputs can be read again: a program keeps its own. Inputs of other sources are kept for an hour. */
function isRepeatable({ spec, stream }: LearnerInit): boolean {
  if (spec.model === 'external') return true
  return stream !== undefined && stream.data !== '-' && !isCustomFormat(stream.format ?? '')
}

/** Multiply-accumulates of a network for an input, up to which the gate judges it. It scores about 1,000 inputs to judge a predictor. */
const MOST_MACS = 2 ** 20

/** Whether the peer numbers its inputs, so that it can learn them again. */
export function numbersInputs({ journal, stream, spec }: LearnerInit): boolean {
  return journal !== undefined || stream !== undefined || spec.model === 'external'
}

/** The initial parameters. Those of a program precede the blocks that predictors carry. */
function startOf({ start = [] }: LearnerInit, learner: Learner): Float32Array[] {
  // Nobody else needs these arrays.
  const given = start.splice(0)
  return learner.initial().map((block, k) => given[k] ?? block)
}

/** @throws RangeError if options do not go together */
export function createNode(
  init: LearnerInit,
  { learner, recipe, classes, influence, adaptiveBatch, budget: elements }: LearningParts,
  budget: PrivacyBudget | undefined
): { readonly node: AdmbNode; readonly gate: LossGate | undefined } {
  const { spec, self, incarnation, nonce, carry, adaptsPeriod } = init
  // Added classes change the numbers of labels, and the decisions of the gate would tell of private inputs.
  const isCheap = !spec.network || (learner.rowMacs !== undefined && learner.rowMacs <= MOST_MACS)
  const hasGate = isCheap && spec.model !== 'external' && !classes && budget === undefined
  const gate = hasGate ? new LossGate(learner, recipe.averaging) : undefined
  const normal = gaussian()
  const { rate, signers = 0, listed, isOpen = true } = init.trust ?? {}
  const members = listed && new Set([...listed, self])
  const isListed = members && ((peer: string) => members.has(peer))
  const node = new AdmbNode({
    ...recipe,
    self,
    incarnation,
    nonce,
    layout: learner.layout,
    initial: startingPredictor(startOf(init, learner), recipe),
    batch: adaptiveBatch ?? spec.batch,
    influence,
    budget: elements,
    carry,
    reusesArrays: spec.model === 'external',
    algorithm: spec.algorithm,
    adaptsPeriod,
    signer: init.signing && createHeaderSigner(init.signing),
    isContributor: isOpen ? undefined : isListed,
    quota: rate === undefined ? undefined : quotaOf(rate, init.period),
    jumps: signers > 0 ? { signers, isListed } : undefined,
    downloadBytes: DOWNLOAD_BYTES,
    fragmentBytes: FRAGMENT_BYTES,
    isOrdered: true,
    journal: numbersInputs(init),
    // A gradient that is computed again would reveal more of its input.
    repeats: budget === undefined,
    history: isRepeatable(init) ? undefined : HOUR_MS / init.period,
    noise: budget && ((sum: Blocks) => addNoise(sum, budget.privacy.deviation, normal)),
    gate: gate && ((candidate: Predictor, current: Predictor) => gate.accepts(candidate, current)),
    carries:
      classes &&
      ((from: Predictor, to: Predictor) => extendsTable(classes.of(from.parameters), classes.of(to.parameters)))
  })
  return { node, gate }
}
