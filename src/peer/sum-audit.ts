/**
 * Compares the newest gradient sum of a neighbour with the receipts of its contributors, and with the gradients of their inputs. Each
 * gradient is computed again at the predictor at which the contributor has learned the input.
 *
 * Integer sums differ from these gradients by rounding: by the residual before the first segment, the residual after the last one, and
 * the second rounding of segments that are carried over. Each error is uniform within half a step and independent in each element, so
 * the squared norm of the difference is close to its mean if there are many elements.
 */
import {
  type AdmbNode,
  type CoveredContributor,
  decodeSaved,
  FrameError,
  formatId,
  type PredictorId,
  type Receipt,
  sameId
} from '../admb/index.js'
import { normOf } from '../admb/influence.js'
import { projectionOf } from '../admb/projection.js'
import { compareReceipts } from '../admb/receipts.js'
import { stepOf, valuesOf } from '../base/lattice.js'
import { type Blocks, driftBlock, ExampleError, INFLUENCE_BLOCK, learnerAfter, zeros } from '../learner/index.js'
import type { LearningParts } from '../task/learning-spec.js'
import type { AskedInputs, KeptAnswer } from './kept-inputs.js'
import { restoredRows } from './saved-rows.js'

/** Maximum number of predictors that are remembered during an audit, and of their bytes if there are more than two. */
const REMEMBERED = 32
const REMEMBERED_BYTES = 2 ** 26
/** Maximum number of classes that are counted. */
const MOST_CLASSES = 1024
/** Share of the gradients' norm by which an honest sum may differ. */
const TOLERANCE = 0.02
/** Mean square of the difference of two uniform rounding errors, in steps; standard deviations of the sum of squares; and a margin. */
const MEAN_SQUARE = 1 / 6
const DEVIATIONS = 5
const MARGIN = 1.25

/** A sum to audit. */
export interface TakenSum {
  readonly predictor: PredictorId
  /** Number of gradients. */
  readonly count: number
  readonly contributors: readonly CoveredContributor[]
  /** Digests of the predictors at which this peer can compute gradients. */
  readonly known: readonly string[]
  /** Seed of the projections in receipts. */
  readonly seed: number
}

/** The request to a contributor. */
export type AskedSum = AskedInputs & Pick<TakenSum, 'seed'>

/** The response of a contributor. */
export interface AuditAnswer {
  readonly inputs: KeptAnswer
  /** Undefined if the contributor no longer knows its part of the sum. */
  readonly receipt?: Receipt
}

/** The part of one contributor. */
export interface ContributorAudit {
  readonly id: string
  /** Segments of its list that the sum contains. */
  readonly segments: number
  /** Number of gradients in its receipt; undefined without a valid receipt. */
  readonly signed?: number
  /** Number of its inputs; undefined if it has sent none. */
  readonly inputs?: number
  /** Their mean loss with the predictor at which they were learned. */
  readonly loss?: number
  /** Classification: number of inputs of each class. */
  readonly labels?: readonly number[]
  /** Why its gradients could not be computed again. */
  readonly reason?: string
}

/** A gradient sum of a neighbour, compared with the receipts and the inputs of its contributors. */
export interface SumAudit {
  readonly predictor: PredictorId
  /** Number of gradients in the sum. */
  readonly count: number
  readonly contributors: readonly ContributorAudit[]
  /** Whether the sum agrees with the receipts of its contributors; null if some receipts are missing. */
  readonly signed: boolean | null
  /** Whether the receipts cover the gradients or only their number. Undefined unless `signed`. */
  readonly signedContent?: 'numbers' | 'gradients'
  /** Whether the sum contains the gradients of these inputs; null if some of them could not be computed again. */
  readonly agrees: boolean | null
  /** Norms of the sum, of its difference from the gradients, and the largest difference that rounding explains. */
  readonly norms?: { readonly sum: number; readonly difference: number; readonly allowed: number }
  /** The disagreement with the receipts or the inputs. */
  readonly reason?: string
}

interface Snapshot extends TakenSum {
  /** In gradient units. */
  readonly sum: Blocks
  readonly steps: ReturnType<NonNullable<LearningParts['recipe']['rule']['grid']>> | undefined
  /** Scale of the bound of influence for each bounded block; empty without a bound. */
  readonly scales: Float32Array
  /** Projection of its integers; undefined for float32 sums. */
  readonly projection: number | undefined
}

export class SumAuditor {
  readonly #node: AdmbNode
  readonly #parts: LearningParts
  /** Parameters by predictor, oldest first. */
  readonly #remembered: { readonly predictor: PredictorId; readonly parameters: Blocks }[] = []
  #edge: number | undefined
  #newest: Snapshot | undefined
  #taken: Snapshot | undefined

  constructor(node: AdmbNode, parts: LearningParts) {
    this.#node = node
    this.#parts = parts
    this.remember()
  }

  /** The node holds another predictor, at which sums may arrive from now on. */
  remember(): void {
    const { id, parameters } = this.#node.predictor
    if (this.#remembered.some(({ predictor }) => sameId(predictor, id))) return
    this.#remembered.push({ predictor: id, parameters: parameters.map(block => block.slice()) })
    const bytes = 4 * parameters.reduce((sum, { length }) => sum + length, 0)
    const most = Math.max(2, Math.min(REMEMBERED, Math.floor(REMEMBERED_BYTES / bytes)))
    if (this.#remembered.length > most) this.#remembered.shift()
  }

  /** Takes the newest sum of an edge, even if an update has used it; undefined if none has arrived since the last call. */
  take(edge: number): TakenSum | undefined {
    if (edge !== this.#edge) {
      this.#edge = edge
      this.#newest = undefined
      this.#node.watchSum(edge, () => this.#keep(edge))
      this.#keep(edge)
    }
    if (this.#newest === undefined) return undefined
    this.#taken = this.#newest
    this.#newest = undefined
    const { predictor, count, contributors, known, seed } = this.#taken
    return { predictor, count, contributors, known, seed }
  }

  /** Ends the audit. */
  stop(): void {
    this.#node.unwatchSum()
  }

  #keep(edge: number): void {
    const held = this.#node.neighbourSum(edge)
    if (held === undefined || held.count === 0) return
    const { predictor } = this.#node
    const { sum, count, contributors } = held
    const steps = this.#parts.recipe.rule.grid?.(predictor, predictor.id.updates)
    const values = steps ? valuesOf(sum as Float32Array[], steps) : sum.map(block => block.slice())
    const known = this.#remembered.map(({ predictor: { digest } }) => digest)
    // It must be unknown until the sum has arrived.
    const [seed] = crypto.getRandomValues(new Uint32Array(1))
    const projection = steps && projectionOf(sum as readonly Float32Array[], seed)
    const { influence } = this.#parts
    const scales = influence?.of(predictor.parameters).slice(0, influence.bounded) ?? new Float32Array()
    const taken = { predictor: predictor.id, count, contributors, known, seed }
    this.#newest = { ...taken, sum: values, steps, scales, projection }
  }

  /** Compares the sum that was taken last. @param answers of its contributors, in their order */
  compare(answers: readonly AuditAnswer[]): SumAudit {
    const taken = this.#taken as Snapshot
    const receipts = taken.contributors.map((contributor, i) => this.#valid(taken, contributor, answers[i]))
    const { isSigned, covers, reason } = compareReceipts(taken, receipts)
    const total = zeros(this.#parts.learner.layout)
    const contributors = taken.contributors.map((contributor, i) => ({
      ...this.#add(contributor, answers[i].inputs, total),
      ...(receipts[i] && { signed: receipts[i].count })
    }))
    const { predictor, count } = taken
    const signed = { signed: isSigned, ...(covers && { signedContent: covers }) }
    const report = { predictor, count, contributors, ...signed, ...(reason && { reason }) }
    if (contributors.some(one => one.reason !== undefined)) return { ...report, agrees: null }
    const inputs = contributors.reduce((sum, one) => sum + (one.inputs ?? 0), 0)
    if (inputs !== count) return { ...report, agrees: false, reason: `${count} gradients of ${inputs} inputs` }
    const groups = answers.reduce((sum, one) => sum + ('groups' in one.inputs ? one.inputs.groups.length : 0), 0)
    const norms = this.#difference(taken, total, groups)
    const agrees = norms.difference <= norms.allowed
    return { ...report, norms, agrees, ...(!agrees && { reason: 'the gradients of the inputs have another sum' }) }
  }

  /** The receipt of a contributor; undefined if it is missing or its signature is wrong. */
  #valid(
    { predictor, seed }: Snapshot,
    contributor: CoveredContributor,
    { receipt }: AuditAnswer
  ): Receipt | undefined {
    const isValid = receipt && this.#node.receipts?.isValid({ ...contributor, predictor, seed }, receipt)
    return isValid ? receipt : undefined
  }

  /** Adds the gradients of a contributor, as it sends them. */
  #add(
    { origin: id, segments }: CoveredContributor,
    answer: KeptAnswer,
    total: readonly Float32Array[]
  ): ContributorAudit {
    if (!('groups' in answer)) return { id, segments, reason: answer.reason }
    const { learner } = this.#parts
    const own = zeros(learner.layout)
    const labels: number[] = []
    const score = { loss: 0, hits: 0 }
    let inputs = 0
    for (const { predictor, size, rows, encoded } of answer.groups) {
      const parameters = this.#parametersOf(predictor, encoded)
      if (parameters === undefined)
        return {
          id,
          segments,
          reason: `some of its inputs were learned at a predictor that is missing (${formatId(predictor)})`
        }
      const examples = restoredRows(size, rows)
      const at = learnerAfter(learner, predictor.updates)
      try {
        at.addGradient(parameters, examples, 0, size, own)
      } catch (error) {
        if (!(error instanceof ExampleError)) throw error
        return { id, segments, reason: `one of its inputs does not fit the model: ${error.message}` }
      }
      at.score(parameters, examples, 0, size, score)
      if (learner.classifies)
        for (const label of examples.labels) if (label < MOST_CLASSES) labels[label] = (labels[label] ?? 0) + 1
      inputs += size
    }
    this.#bound(own, inputs)
    for (const [b, block] of total.entries()) for (let i = 0; i < block.length; i++) block[i] += own[b][i]
    const shares = learner.classifies ? { labels: Array.from(labels, number => number ?? 0) } : {}
    return { id, segments, inputs, loss: inputs > 0 ? score.loss / inputs : 0, ...shares }
  }

  /** Scales a contributor's sum down to the bound of influence, if there is one. */
  #bound(own: readonly Float32Array[], count: number): void {
    const { scales } = this.#taken as Snapshot
    for (const [b, scale] of scales.entries()) {
      const factor = (scale * Math.sqrt(count)) / normOf(own[b])
      if (scale > 0 && factor < 1) for (let i = 0; i < own[b].length; i++) own[b][i] *= factor
    }
  }

  /** @param encoded the predictor according to another peer @returns undefined if it is not known, or the bytes do not match the id */
  #parametersOf(id: PredictorId, encoded?: string): Blocks | undefined {
    const remembered = this.#remembered.find(({ predictor }) => sameId(predictor, id))
    if (remembered || encoded === undefined) return remembered?.parameters
    try {
      const { predictor } = decodeSaved(
        Buffer.from(encoded, 'base64'),
        this.#node.shapes,
        undefined,
        this.#parts.recipe.digest
      )
      return sameId(predictor.id, id) ? predictor.parameters : undefined
    } catch (error) {
      if (error instanceof FrameError) return undefined
      throw error
    }
  }

  #difference({ sum, steps }: Snapshot, total: Blocks, groups: number): NonNullable<SumAudit['norms']> {
    let [squares, gradients, differences, roundings, fourths] = [0, 0, 0, 0, 0]
    for (const [b, { name }] of this.#parts.learner.layout.blocks.entries()) {
      // Votes are no gradients.
      if (name === driftBlock.name || name === INFLUENCE_BLOCK) continue
      for (let i = 0; i < total[b].length; i++) {
        const [sent, own] = [sum[b][i], total[b][i]]
        squares += sent * sent
        gradients += own * own
        differences += (sent - own) ** 2
        if (steps === undefined || (sent === 0 && own === 0)) continue
        const square = stepOf(steps[b], i) ** 2
        roundings += square
        fourths += square * square
      }
    }
    // The standard deviation of a squared error is about its mean.
    const rounding = groups * MEAN_SQUARE * (roundings + DEVIATIONS * Math.sqrt(fourths))
    const allowed = TOLERANCE * Math.sqrt(gradients) + MARGIN * Math.sqrt(rounding)
    return { sum: Math.sqrt(squares), difference: Math.sqrt(differences), allowed }
  }
}
