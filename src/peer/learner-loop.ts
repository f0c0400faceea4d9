/**
 * The learner thread's loop: predicts, scores and learns inputs in slices of a few milliseconds, and handles ticks, frames and
 * requests between them. It never waits for the network: a frame is sent when an edge can take one, and encoded only then, from
 * the newest state.
 */
import {
  type AdmbNode,
  Driver,
  type DriverJournal,
  FrameError,
  type HostEffect,
  PredictorGossip,
  type PredictorId,
  sameId
} from '../admb/index.js'
import type { ExampleStream, StreamPosition } from '../data/index.js'
import type { Layout } from '../learning/index.js'
import type { LearningParts } from '../task/learning-parts.js'
import { Checkpoints } from './checkpoints.js'
import { EdgeWriters } from './edge-writers.js'
import { InputLog } from './input-log.js'
import { LateLabels } from './late-labels.js'
import { LearnedKeys } from './learned-keys.js'
import type { LearnerContext } from './learner-context.js'
import { createNode, numbersInputs } from './learner-node.js'
import { LearnerReport } from './learner-report.js'

import { blocksIn, DOWNLOAD_BYTES, type PartsQuery } from './predictor-parts.js'
import { PrivacyBudget } from './privacy-budget.js'
import { type MapMemory, ProgramLearner } from './program-learner.js'
import { Recovery } from './recovery.js'
import { RequestSlices } from './request-slices.js'
import { StreamLoop } from './stream-loop.js'
import { StreamProgress, streamKey } from './stream-progress.js'
import { TestThenTrain } from './test-then-train.js'
import type { LearnerInit, LearnerStatus, Requests, Serving, ToLoop } from './thread-messages.js'
import { WarningLimiter, warningOf } from './warnings.js'

export type Post = LearnerContext['post']

export class LearnerLoop {
  readonly #init: LearnerInit
  readonly #post: Post
  readonly #now: () => number
  readonly #node: AdmbNode
  readonly #driver: Driver
  readonly #writers: EdgeWriters
  readonly #progress: StreamProgress
  readonly #training: TestThenTrain
  readonly #inputs: InputLog | undefined
  readonly #keys: LearnedKeys
  /** Undefined for models that this thread computes. */
  readonly #program: ProgramLearner | undefined
  /** Answers requests. */
  readonly requests: RequestSlices
  readonly #gossip: PredictorGossip
  readonly #warnings: WarningLimiter
  readonly #context: LearnerContext
  readonly #reading: StreamLoop
  #isStopping = false
  readonly #checkpoints: Checkpoints | undefined
  readonly #report: LearnerReport
  /** Whether the predictor has changed since frames were sent. */
  #hasChanged = false
  readonly #budget: PrivacyBudget | undefined
  /**
   * Resolves when the peer holds the predictor of the network that it joins, or begins without one. Until then it reads no stream and
   * serves no predictions.
   */
  readonly begun: Promise<void>
  #begin: (() => void) | undefined
  /** Ends the wait for inputs to learn again. */
  #wakeRecovery: () => void = () => undefined
  /** Wakes what waits until the node takes inputs again. */
  readonly #onRoom: (() => void)[] = []

  /**
   * @param parts the learner and recipe that `init.spec` describes
   * @param now a monotonic clock in milliseconds
   * @param map maps the file of a program @default there is none
   * @throws OptionError, FrameError if options, spec and saved state do not go together
   */
  constructor(
    init: LearnerInit,
    parts: LearningParts,
    post: Post,
    now: () => number,
    map?: (path: string, layout: Layout) => ReturnType<MapMemory>
  ) {
    this.#init = init
    this.#post = post
    this.#now = now
    this.begun = init.joins ? new Promise(resolve => (this.#begin = resolve)) : Promise.resolve()
    const { learner, recipe } = parts
    const { self, incarnation } = init
    this.#budget = init.budget && new PrivacyBudget(init.budget.options, init.budget.stored)
    const { node, gate } = createNode(init, parts, this.#budget)
    this.#node = node
    this.#keys = new LearnedKeys(init.journal?.keys)
    if (numbersInputs(init)) this.#inputs = new InputLog(init.journal, this.#streamKey)
    this.#writers = new EdgeWriters((edge, bytes) =>
      post({ kind: 'frame', edge, bytes }, [bytes.buffer as ArrayBuffer])
    )
    this.#driver = new Driver(
      node,
      {
        canSend: edge => this.#writers.canSend(edge),
        send: (edge, bytes) => this.#writers.send(edge, bytes),
        announce: (edge, bytes) => post({ kind: 'announcement', edge, bytes }),
        on: effect => this.#on(effect)
      },
      { period: init.period, now: now(), isPrivate: this.#budget !== undefined, journal: this.#journal }
    )
    const { saved } = init
    this.#driver.restore(init.journal && this.#inputs?.records, () => saved && node.restoreBlocks(saved))
    this.#progress = new StreamProgress(init, learner, now)
    this.#gossip = new PredictorGossip(self, Math.random)
    this.#warnings = new WarningLimiter(reason => post({ kind: 'warning', reason }), now)
    const { labelDelay } = init
    this.#training = new TestThenTrain({
      gate,
      lateLabels: labelDelay === undefined ? undefined : new LateLabels(labelDelay, incarnation, now),
      init,
      learner,
      averaging: recipe.averaging,
      node: this.#node,
      progress: this.#progress,
      inputs: this.#inputs,
      onLearned: () => {
        this.#driver.takeEffects()
        this.onLearned?.()
      },
      onMisfit: reason => this.warn(reason)
    })
    this.#context = {
      init,
      node,
      driver: this.#driver,
      training: this.#training,
      progress: this.#progress,
      inputs: this.#inputs,
      keys: this.#keys,
      budget: this.#budget,
      post,
      now,
      isStopping: () => this.#isStopping,
      flush: () => this.#flush(),
      room: () => this.room(),
      notice: line => this.notice(line),
      warn: reason => this.warn(reason)
    }
    if (this.#inputs && init.journal) this.#checkpoints = new Checkpoints(this.#context, this.#inputs)
    this.#reading = new StreamLoop(this.#context, () => this.#hasChanged)
    this.requests = new RequestSlices(this.#context)
    this.#report = new LearnerReport(this.#context, {
      joining: () => this.#begin !== undefined,
      hasEnded: () => this.#hasEnded,
      skipped: () => this.#training.misfits + this.#reading.skipped,
      devices: () => parts.devices?.report()
    })
    if (init.spec.model === 'external' && map !== undefined) {
      const layout = { blocks: init.spec.program.blocks }
      this.#program = this.#createProgram(parts, path => map(path, layout))
    }
  }

  /** The end of a program that computes the gradients. */
  #createProgram({ recipe }: LearningParts, map: MapMemory): ProgramLearner {
    return new ProgramLearner({
      ...this.#context,
      averaging: recipe.averaging,
      inputs: this.#inputs as InputLog,
      map,
      begun: this.begun,
      send: message => this.#post({ kind: 'to-program', message }),
      refuse: reason => this.#post({ kind: 'refuse-program', reason }),
      onLearned: () => {
        this.#driver.takeEffects()
        this.onLearned?.()
      }
    })
  }

  /** Called after some inputs have been learned. */
  onLearned: (() => void) | undefined

  /** Where the stream continues; undefined for its start. */
  get resume(): StreamPosition | number | undefined {
    return this.#progress.resume
  }

  /** Learns from the stream until it ends or `stop` is called, see `StreamLoop.run`. */
  run(stream: ExampleStream, pause: (ms: number) => Promise<void>): Promise<void> {
    return this.#reading.run(stream, pause)
  }

  /**
   * Learns inputs again that no batch of the lineage has used. Resolves after `stop`.
   * @param open opens the stream at a position
   */
  async recover(
    open: (place: StreamPosition) => Promise<ExampleStream>,
    pause: (ms: number) => Promise<void>
  ): Promise<void> {
    const idle = () => new Promise<void>(resolve => (this.#wakeRecovery = resolve))
    const options = { reading: this.#reading, idle, open, pause }
    if (this.#inputs && !this.#program) await new Recovery({ ...this.#context, inputs: this.#inputs, ...options }).run()
  }

  /** Resolves when the node takes inputs: at once, except with DMB. */
  async room(): Promise<void> {
    while (this.#node.room === 0 && !this.#isStopping) await new Promise<void>(resolve => this.#onRoom.push(resolve))
  }

  /** Runs the periodic step of algorithm 4. @param count number of periods that have passed without an event @default 1 */
  tick(count = 1): void {
    const now = this.#now()
    for (let each = 0; each < count; each++) this.#driver.tick(now, this.#isOver && !this.#isStopping)
    this.#driver.protect()
    if (this.#init.predictWith === 'ahead') this.#training.updateServing()
    const { id } = this.#node.predictor
    const announced = this.#gossip.takeDue(
      now,
      predictor => this.#wants(predictor),
      predictor => this.#node.isExpected(predictor)
    )
    if (announced) this.#post({ kind: 'fetch', ...announced, isLarge: this.#isLarge })
    if (this.#gossip.shouldAnnounce(id, now)) this.#post({ kind: 'announce', predictor: id })
    this.#report.postDue(now)
    this.#checkpoints?.write()
    this.#flush()
  }

  /** Whether no further inputs are expected. A master without a stream would wait forever for inputs of requests. */
  get #isOver(): boolean {
    const { stream, spec } = this.#init
    return this.#hasEnded || (this.#program === undefined && stream === undefined && spec.algorithm !== undefined)
  }

  /** Whether the stream, or the inputs of the program, have ended. */
  get #hasEnded(): boolean {
    return this.#program?.hasEnded ?? this.#reading.hasEnded
  }

  receive(message: ToLoop): void {
    switch (message.kind) {
      case 'connect':
        this.#writers.open(message.edge)
        // Each session has its own stream, so late frames of another session cannot arrive on this edge.
        this.#driver.connect(message.edge, 0, message.peer)
        break
      case 'disconnect':
        this.#writers.close(message.edge)
        this.#driver.disconnect(message.edge, message.hasLeft)
        break
      case 'master':
        this.#node.setMaster(message.edge)
        break
      case 'frame':
        this.#node.receive(message.edge, message.bytes)
        this.#post({ kind: 'consumed', edge: message.edge })
        break
      case 'fragment':
        this.#node.receive(message.edge, message.bytes)
        break
      case 'writable':
        if (this.#writers.cleared(message.edge)) this.#node.taken(message.edge)
        break
      case 'announced':
        if (this.#wants(message.predictor)) this.#gossip.receive(message, this.#now())
        break
      case 'fetched':
        this.#offer(message.bytes, message.from)
        break
      case 'fetch-ended':
        this.#gossip.fetchEnded()
        break
      case 'downloaded':
        this.#downloadEnded(message)
        break
      case 'served':
        this.#node.storage.servingEnded()
        break
      case 'begin':
        this.#begin?.()
        this.#begin = undefined
        break
      case 'stored':
        this.#checkpoints?.stored()
        break
      case 'program-joined':
        void this.#program?.joined(message)
        break
      case 'program':
        this.#program?.receive(message.message, message.content)
        break
      case 'program-lost':
        this.#program?.lost()
        break
      case 'pace':
        this.#reading.pace.change(message.rate, message.perUpdate, this.#now())
        break
      default:
        message satisfies never
    }
    this.#flush()
    if (this.#begin && this.#node.hasJoined) {
      this.notice(`joined the network at update ${this.#node.predictor.id.updates}`)
      this.#begin()
      this.#begin = undefined
    }
  }

  /** The current predictor, encoded for `decodeSaved`. */
  saved(): Uint8Array {
    this.#driver.record()
    const bytes = this.#node.storage.save()
    this.#flush()
    return bytes
  }

  /** The current predictor for peers that download it; see `PartServer`. */
  parts(query: PartsQuery, held: PredictorId | undefined): Requests['parts']['result'] {
    const { predictor, storage } = this.#node
    const { id } = predictor
    const fits = ({ digest, updates }: PredictorId) =>
      'digest' in query ? digest === query.digest : updates >= query.updates
    if (held && fits(held) && (sameId(held, id) || storage.stepBytes(held) !== undefined)) return 'held'
    if (!this.#isLarge || !fits(id)) return undefined
    this.#driver.record()
    const { head, blocks } = storage.sendBlocks()
    const sent = { id, head, blocks: [...blocks] }
    this.#flush()
    return sent
  }

  get #isLarge(): boolean {
    return this.#node.storage.maxBytes >= DOWNLOAD_BYTES
  }

  /** A block of a checkpoint that is being stored. */
  block(checkpoint: number, index: number): Uint8Array {
    return (this.#checkpoints as Checkpoints).block(checkpoint, index)
  }

  /** The predictor that serves predictions, in blocks that later events do not change. */
  lastingServing(): Serving {
    const blocks = this.#training.lastingServing
    return { predictor: this.#node.predictor.id, blocks, moments: this.#progress.progress().moments }
  }

  /** Logs what happened to the stream's source. */
  notice(line: string): void {
    this.#post({ kind: 'notice', line })
  }

  /** Logs a warning, within the limit of their rate. */
  warn(reason: string): void {
    this.#warnings.warn(reason)
  }

  /** Identifies the source of the inputs. */
  get #streamKey(): string | undefined {
    const { spec, stream } = this.#init
    return spec.model === 'external' ? streamKey({ data: 'program' }) : stream && streamKey(stream)
  }

  /** The names of the classes of the current predictor. */
  get classNames(): readonly string[] | undefined {
    return this.#training.classNames
  }

  status(): LearnerStatus {
    return this.#report.status()
  }

  /** Posts a checkpoint, if the state has changed since the last one. */
  checkpoint(): void {
    this.#checkpoints?.write(true)
  }

  /** Resolves when all checkpoints have been stored. */
  async stored(): Promise<void> {
    await this.#checkpoints?.allStored()
  }

  /** Makes `run` and `recover` return before the next slice. */
  stop(): void {
    this.#isStopping = true
    this.#begin?.()
    this.#wakeRecovery()
    this.#wakeRoom()
  }

  #on(effect: HostEffect): void {
    switch (effect.kind) {
      case 'adopted':
        this.#report.adopted++
        this.#predictorChanged()
        break
      case 'updated':
        this.#predictorChanged()
        break
      case 'refused':
        this.#post({ kind: 'refused', edge: effect.edge, reason: effect.reason })
        break
      case 'offered':
        this.#post({ kind: 'download', predictor: effect.predictor, from: effect.from })
        break
      case 'excluded':
        this.#post({ kind: 'excluded', maker: effect.maker })
        this.#warnings.warn(warningOf(effect))
        break
      case 'rejected':
      case 'quarantined':
      case 'unlisted':
      case 'excessive':
        this.#warnings.warn(warningOf(effect))
        break
      default:
        effect satisfies never
    }
  }

  #predictorChanged(): void {
    this.#hasChanged = true
    this.#program?.predictorChanged()
    if (this.#node.waiting > 0 || this.#node.relearnable) this.#wakeRecovery()
    this.#training.updateServing()
    this.#reading.pace.updated(this.#node.predictor.id.updates, this.#now())
    this.#report.predictorChanged()
  }

  /** Handles the effects of an event, and sends frames on the edges that can take one. */
  #flush(): void {
    this.#driver.flush()
    this.#hasChanged = false
    if (this.#onRoom.length > 0 && this.#node.room > 0) this.#wakeRoom()
  }

  #wakeRoom(): void {
    for (const wake of this.#onRoom.splice(0)) wake()
  }

  /** Records are posted before what follows from them; the main thread stores them in this order. */
  get #journal(): DriverJournal | undefined {
    const inputs = this.#inputs
    if (inputs === undefined) return undefined
    if (this.#init.journal === undefined) return { isStored: false, append: () => inputs.close() }
    const append: DriverJournal['append'] = records =>
      this.#post({
        kind: 'journal',
        ...inputs.take(records, this.#progress.sums),
        budget: this.#budget?.take(),
        keys: this.#keys.take()
      })
    return { isStored: true, append }
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
    this.#checked(from, () => this.#node.offer(bytes, from))
  }

  #downloadEnded({ predictor, from }: Extract<ToLoop, { readonly kind: 'downloaded' }>): void {
    const stored = predictor && { head: predictor.head, blocks: blocksIn(predictor) }
    this.#checked(from, () => this.#node.downloadEnded(stored, from))
  }

  #checked(from: string, adopt: () => void): void {
    try {
      adopt()
    } catch (error) {
      if (!(error instanceof FrameError)) throw error
      this.warn(`the predictor fetched from ${from} is invalid: ${error.message}`)
    }
  }
}
