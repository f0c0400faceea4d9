/** What the learner thread reports of itself: its status, at once while it learns and every second while it does not. */
import type { PredictorId } from '../admb/index.js'
import { growingNames } from '../task/learning-spec.js'
import { RecentDigests } from '../view/aggregate.js'
import type { LearnerContext } from './learner-context.js'
import type { LearnerStatus } from './thread-messages.js'

/** The shortest time between two statuses. */
const STATUS_MS = 250
/** The same while nothing is learned. */
const IDLE_STATUS_MS = 1000
/** Number of peers that a status names for whose gradients the peer waits. */
const MAX_NAMED = 16

interface LoopState {
  /** Whether the peer still waits for the predictor of the network that it joins. */
  readonly joining: () => boolean
  /** Whether the stream, or the inputs of the program, have ended. */
  readonly hasEnded: () => boolean
  /** Number of inputs that could not be learned. */
  readonly skipped: () => number
  /** Devices that share the minibatches; undefined for one. */
  readonly devices: () => LearnerStatus['devices']
}

export class LearnerReport {
  /** Number of predictors that were adopted. */
  adopted = 0
  readonly #context: LearnerContext
  readonly #state: LoopState
  readonly #recentDigests = new RecentDigests()
  /** Largest number of gradients that came too late for a batch. */
  #late = 0
  #lastStatus = 0
  #reported: { inputs: number; id: PredictorId; hasEnded: boolean } | undefined

  constructor(context: LearnerContext, state: LoopState) {
    this.#context = context
    this.#state = state
  }

  predictorChanged(): void {
    this.#recentDigests.add(this.#context.node.predictor.id)
  }

  /** Posts the status, if the last one is out of date. */
  postDue(now: number): void {
    const age = now - this.#lastStatus
    if (age < STATUS_MS || (age < IDLE_STATUS_MS && !this.#hasNews)) return
    this.#lastStatus = now
    const { node, progress, post } = this.#context
    this.#reported = { inputs: progress.sums.inputs, id: node.predictor.id, hasEnded: this.#state.hasEnded() }
    post({ kind: 'status', status: this.status(), recent: this.#recentDigests.take() })
  }

  get #hasNews(): boolean {
    const { node, progress } = this.#context
    const { inputs, id, hasEnded } = this.#reported ?? {}
    return inputs !== progress.sums.inputs || id !== node.predictor.id || hasEnded !== this.#state.hasEnded()
  }

  status(): LearnerStatus {
    const { init, node, progress, training, budget } = this.#context
    const names = growingNames(init.spec)
    const { used, available, waiting, repeated, discarded } = node.account
    const { traffic, residualShare, clippedShare, quarantined, refused } = node.inspect
    this.#late = Math.max(this.#late, discarded + repeated)
    return {
      ...(names && { addedClasses: training.classNames?.slice(names.length) ?? [] }),
      progress: progress.sums,
      metrics: progress.metrics,
      drift: progress.drift,
      predictor: node.predictor.id,
      batch: node.batch,
      adopted: this.adopted,
      discarded,
      gradients: { used, available, waiting, repeated, late: this.#late },
      joining: this.#state.joining(),
      waitsFor: node.waitsFor.length > 0 ? node.waitsFor.slice(0, MAX_NAMED) : undefined,
      skipped: this.#state.skipped(),
      ended: this.#state.hasEnded(),
      traffic,
      residualShare,
      clippedShare,
      quarantined,
      refused,
      privacy: budget?.status,
      devices: this.#state.devices()
    }
  }
}
