/**
 * The learner thread's work: inputs are predicted, scored and learned from, a slice of some milliseconds at a time; in
 * between, ticks, frames and requests are served. Nothing here ever waits for the network: a frame leaves when an edge can
 * take one, and otherwise the next one is newer.
 */
import { AdmbNode, type Effect, FrameError, type PredictorId, startingPredictor } from '../admb/index.js'
import type { ExampleStream, Rows } from '../streams/index.js'
import type { LearningParts } from '../task/learning-spec.js'
import { RecentDigests } from '../view/index.js'
import { EdgeWriters } from './edge-writers.js'
import { HeadWatch } from './head-watch.js'
import { Pace } from './pace.js'
import { StreamProgress } from './stream-progress.js'
import { StreamingSums } from './streaming-sums.js'
import { TestThenTrain } from './test-then-train.js'
import type { FromLearner, InputAnswer, LearnerInit, LearnerStatus, ToLearner } from './thread-messages.js'
import { Warnings } from './warnings.js'

/** Rows that are scored and learned from between two looks at the clock. */
const SLICE_ROWS = 64
/** Milliseconds of learning between two looks at the mailbox. */
const SLICE_MS = 4
const STATUS_MS = 250
/** Vectors of a frame that take more bytes go ahead of it in parts of about so many. */
const PART_BYTES = 1 << 20
/** Checkpoints take at most a tenth of the time, and come at least that often otherwise, in milliseconds. */
const CHECKPOINT_MS = 500

export type Post = (message: FromLearner, transfer?: readonly ArrayBuffer[]) => void

export class LearnerLoop {
  readonly #init: LearnerInit
  readonly #post: Post
  readonly #now: () => number
  readonly #node: AdmbNode
  readonly #writers: EdgeWriters
  readonly #progress: StreamProgress
  readonly #training: TestThenTrain
  readonly #heads: HeadWatch
  readonly #warnings: Warnings
  readonly #recentDigests = new RecentDigests()
  #adopted = 0
  #stream: ExampleStream | undefined
  #ended = false
  #stopping = false
  #stored: { readonly inputs: number; readonly updates: number } | undefined
  #storing = false
  #storeAfter = 0
  #lastStatus = 0

  /**
   * @param parts what `init.spec` describes
   * @param now a monotonic clock in milliseconds
   * @throws OptionError, FrameError for what does not fit together
   */
  constructor(init: LearnerInit, { learner, recipe }: LearningParts, post: Post, now: () => number) {
    this.#init = init
    this.#post = post
    this.#now = now
    const { self, incarnation, carry } = init
    const initial = startingPredictor(learner.initial(), recipe)
    const { layout } = learner
    const { batch } = init.spec
    const fragmentBytes = PART_BYTES
    this.#node = new AdmbNode({ ...recipe, self, incarnation, layout, initial, batch, carry, fragmentBytes })
    this.#writers = new EdgeWriters((edge, bytes) =>
      post({ kind: 'frame', edge, bytes }, [bytes.buffer as ArrayBuffer])
    )
    if (init.saved) this.#node.restoreBlocks(init.saved)
    this.#progress = new StreamProgress(init, learner.classifies)
    this.#heads = new HeadWatch(self)
    this.#warnings = new Warnings(reason => post({ kind: 'warning', reason }), now)
    this.#training = new TestThenTrain({
      init,
      learner,
      node: this.#node,
      tally: this.#progress,
      early: new StreamingSums(this.#node, this.#writers, init.period, now),
      onLearned: () => this.#takeEffects(),
      onUnfit: reason => this.warn(reason)
    })
  }

  /**
   * Learns from the stream to its end, or until `stop` arrives, from the row on that no earlier run has learned.
   * @param stream not scaled: that is done here, row by row, so that the moments are those of the rows learned
   * @param pause gives way to the mailbox
   */
  async run(stream: ExampleStream, pause: (ms: number) => Promise<void>): Promise<void> {
    this.#stream = stream
    const pace = new Pace(this.#init.rate ?? Number.POSITIVE_INFINITY, this.#now())
    let until = this.#now() + SLICE_MS
    let passed = 0
    for await (const rows of stream) {
      let row = Math.min(rows.size, Math.max(0, this.#progress.position - passed))
      passed += rows.size
      for (;;) {
        if (this.#stopping) return
        const due = row < rows.size ? pace.due(this.#now()) : 0
        const to = Math.min(rows.size, row + due, row + SLICE_ROWS)
        if (to > row) {
          this.#training.learn(rows, row, to)
          pace.take(to - row)
          this.#progress.position += to - row
          row = to
        } else if (row < rows.size) {
          await pause(pace.wait)
          until = this.#now() + SLICE_MS
        }
        if (this.#now() >= until) {
          await pause(0)
          until = this.#now() + SLICE_MS
        }
        if (row === rows.size) break
      }
    }
    this.#ended = true
  }

  /** Algorithm 4's period. */
  tick(): void {
    this.#node.tick()
    if (this.#init.predictWith === 'ahead') this.#training.renew()
    const now = this.#now()
    const { id } = this.#node.predictor
    const head = this.#heads.due(now)
    if (head && this.#wants(head.name)) this.#post({ kind: 'fetch', ...head })
    if (this.#heads.announces(id, now)) this.#post({ kind: 'head', name: id })
    if (now - this.#lastStatus >= STATUS_MS) {
      this.#lastStatus = now
      this.#post({ kind: 'status', status: this.status(), trail: this.#recentDigests.take() })
    }
    if (this.#init.durable && !this.#storing && now >= this.#storeAfter) this.checkpoint()
    this.#flushEffects()
  }

  receive(message: ToLearner): void {
    switch (message.kind) {
      case 'connect':
        this.#writers.open(message.edge)
        // A stream is a session of its own, so late frames of another cannot arrive on it.
        this.#node.connect(message.edge, 0, message.peer)
        break
      case 'disconnect':
        this.#writers.close(message.edge)
        this.#node.disconnect(message.edge)
        break
      case 'frame':
        this.#node.receive(message.edge, message.bytes)
        this.#post({ kind: 'consumed', edge: message.edge })
        break
      case 'part':
        this.#node.receive(message.edge, message.bytes)
        break
      case 'writable':
        this.#writers.cleared(message.edge)
        break
      case 'head':
        if (this.#wants(message.name)) this.#heads.hear(message, this.#now())
        break
      case 'fetched':
        this.#offer(message.bytes, message.from)
        break
      case 'save':
        this.#saved(message.id)
        break
      case 'serve': {
        const { id } = this.#node.predictor
        const { moments } = this.#progress.progress()
        this.#post({ kind: 'served', id: message.id, name: id, blocks: this.#training.serving, moments })
        break
      }
      case 'stored':
        this.#storing = false
        break
      case 'request':
      case 'stop':
        break
      default:
        message satisfies never
    }
    this.#flushEffects()
  }

  /** Predicts, or predicts and learns from, rows that came with a request. */
  answer(rows: Rows, learn: boolean): InputAnswer {
    const predictions = this.#training.answer(rows, learn)
    this.#flushEffects()
    return { predictions, predictor: this.#node.predictor.id }
  }

  /** Tells the user something, unless too much is told already. */
  warn(reason: string): void {
    this.#warnings.warn(reason)
  }

  status(): LearnerStatus {
    return {
      progress: this.#progress.sums,
      predictor: this.#node.predictor.id,
      adopted: this.#adopted,
      discarded: this.#node.discarded,
      skipped: this.#training.unfit + (this.#stream?.skipped ?? 0),
      ended: this.#ended
    }
  }

  /** Hands the state over to be stored, if it has changed. */
  checkpoint(): void {
    const { updates } = this.#node.predictor.id
    const { inputs } = this.#progress
    if (this.#stored?.inputs === inputs && this.#stored.updates === updates) return
    const start = this.#now()
    const { head, blocks: encoded } = this.#node.saveBlocks()
    const blocks = [...encoded]
    this.#storing = true
    this.#stored = { inputs, updates }
    const progress = this.#progress.progress()
    const buffers = [head, ...blocks].map(({ buffer }) => buffer as ArrayBuffer)
    this.#post({ kind: 'checkpoint', head, blocks, progress }, buffers)
    this.#storeAfter = this.#now() + Math.max(CHECKPOINT_MS, 10 * (this.#now() - start))
  }

  /** Ends `run` before the next slice. */
  stop(): void {
    this.#stopping = true
  }

  #takeEffects(): void {
    for (const effect of this.#node.takeEffects()) this.#on(effect)
  }

  #on(effect: Effect): void {
    switch (effect.kind) {
      case 'adopted':
        this.#adopted++
        this.#hold()
        break
      case 'updated':
        this.#hold()
        break
      case 'refused':
        this.#post({ kind: 'refused', edge: effect.edge, reason: effect.reason })
        break
      default:
        effect satisfies never
    }
  }

  #hold(): void {
    this.#training.renew()
    this.#recentDigests.add(this.#node.predictor.id)
  }

  /** After every event: what it led to, and frames for the edges that can take one. */
  #flushEffects(): void {
    this.#takeEffects()
    this.#writers.fill(edge => this.#node.frame(edge))
  }

  #wants(id: PredictorId): boolean {
    try {
      return this.#node.isBetter(id)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.warn(error.message)
      return false
    }
  }

  #offer(bytes: Uint8Array, from: string): void {
    try {
      this.#node.offer(bytes, from)
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.warn(`the predictor fetched from ${from} is unusable: ${error.message}`)
    }
  }

  #saved(id: number): void {
    const bytes = this.#node.save()
    this.#post({ kind: 'saved', id, bytes }, [bytes.buffer as ArrayBuffer])
  }
}
