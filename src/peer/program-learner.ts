/**
 * The learner thread's end of a program in another process that computes gradients. The node numbers the inputs and makes the
 * updates; the program addresses its rows by these numbers, and hands over sums of gradients, or of differences of local steps.
 */
import type { AdmbNode } from '../admb/index.js'
import type { Averaging, Blocks } from '../learning/index.js'
import { addTo } from '../numeric/block-kernels.js'
import { isFiniteBlock } from '../numeric/numbers.js'
import { type Add, encodeAdded, encodeJson, type Join, kinds, outcomes, parseAdd } from '../program/messages.js'
import type { SharedMemory } from '../program/shared-memory.js'
import type { InputLog } from './input-log.js'
import type { LearnerContext } from './learner-context.js'

/** Updates that gradients may always be behind. Older ones are used as long as gradients are carried over. */
const MAX_BEHIND = 1
/** Number of sums after which a warning may say that many of them were too old. */
const WARNING_ADDS = 32

const NEVER = Number.POSITIVE_INFINITY

/** Maps the file of a program into memory. */
export type MapMemory = (path: string) => Promise<SharedMemory>

interface ProgramLearnerOptions extends LearnerContext {
  readonly averaging: Averaging
  readonly inputs: InputLog
  readonly map: MapMemory
  /** Resolves when the peer may learn. */
  readonly begun: Promise<void>
  readonly send: (message: Uint8Array) => void
  /** Ends the connection of the program. */
  readonly refuse: (reason: string) => void
  /** Called after inputs have been added. */
  readonly onLearned: () => void
}

export class ProgramLearner {
  readonly #options: ProgramLearnerOptions
  #memory: SharedMemory | undefined
  /** Counts the programs that have joined, and their ends. */
  #session = 0
  /** Number of the newest parameters in the file. */
  #generation = 0
  /** The predictor that the file holds. */
  #written: AdmbNode['predictor'] | undefined
  /** The predictor in each place for parameters: its updates, and when there was a better one. */
  readonly #places: { updates: number; replacedAt: number }[] = [0, 1].map(() => ({ updates: 0, replacedAt: NEVER }))
  /** Sums since the last warning, and how many of them were too old. */
  readonly #adds = { all: 0, stale: 0 }
  #hasEnded = false

  constructor(options: ProgramLearnerOptions) {
    this.#options = options
  }

  /** Whether the program has said that no further inputs are expected. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** A program joins. It is welcomed as soon as the peer may learn. */
  async joined({ memory: path }: Pick<Join, 'memory'>): Promise<void> {
    const { init, node, inputs, begun, send, map, refuse } = this.#options
    const session = ++this.#session
    try {
      const memory = await map(path)
      await begun
      if (session !== this.#session) return memory.close()
      this.#memory = memory
    } catch (error) {
      // Another program may have joined meanwhile.
      return session === this.#session ? refuse((error as Error).message) : undefined
    }
    this.#hasEnded = false
    this.#generation = 0
    this.#places[0] = { updates: node.predictor.id.updates, replacedAt: NEVER }
    this.#written = undefined
    this.predictorChanged()
    const { batch, localSteps = 1 } = init.spec
    send(
      encodeJson(kinds.welcome, {
        self: init.self,
        run: init.incarnation,
        batch,
        localSteps,
        next: inputs.next,
        updates: node.predictor.id.updates
      })
    )
  }

  /** The program has gone. */
  lost(): void {
    this.#session++
    this.#memory?.close()
    this.#memory = undefined
  }

  /** A message of the program. A wrong one ends its connection. */
  receive(kind: number, content: Uint8Array): void {
    const { refuse, send } = this.#options
    const memory = this.#wholeMemory()
    if (memory === undefined) return
    try {
      if (kind === kinds.add) this.#reply(memory, this.#add(memory, parseAdd(content)))
      else if (kind === kinds.average) {
        this.#copyAverage(memory)
        send(encodeJson(kinds.averaged))
      } else if (kind === kinds.bye) this.#hasEnded = true
      else refuse(`a message of kind ${kind} is not known`)
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'ERR_PROGRAM')) throw error
      refuse(error.message)
    }
  }

  /** The node has another predictor. */
  predictorChanged(): void {
    const memory = this.#wholeMemory()
    if (memory === undefined) return
    const { replacedAt } = this.#places[this.#generation & 1]
    if (replacedAt === NEVER) this.#places[this.#generation & 1].replacedAt = this.#options.now()
    memory.newest[0] = BigInt(this.#options.node.predictor.id.updates)
    this.#options.send(encodeJson(kinds.changed))
  }

  /** The memory of the program that has joined, unless the program has cut it off, which ends its connection. */
  #wholeMemory(): SharedMemory | undefined {
    if (this.#memory === undefined || this.#memory.isWhole()) return this.#memory
    this.lost()
    this.#options.refuse('its memory is shorter than at its join: keep the length of the file')
    return undefined
  }

  /** @returns what became of the gradients */
  #add(memory: SharedMemory, { slot, generation, first, count, loss }: Add): number {
    const { node, driver, inputs, progress, onLearned } = this.#options
    if (count === 0) return outcomes.used
    const [again, end] = node.relearnable ?? [0, 0]
    const isAgain = first === again && first + count <= end
    if (first !== inputs.next && !isAgain) return outcomes.duplicate
    if (this.#isStale(generation)) return outcomes.stale
    const sums = memory.sums[slot]
    if (!Number.isFinite(loss) || !sums.every(isFiniteBlock)) return outcomes.invalid
    const learn = () => {
      node.accumulator.forEach((block, k) => {
        if (k < sums.length) addTo(block, sums[k])
      })
      if (!isAgain) inputs.addNumbered(count)
      node.added(count, first)
    }
    if (isAgain) driver.inOwnSegment(learn)
    else {
      progress.inputs += count
      progress.score.loss += count * loss
      learn()
    }
    onLearned()
    return outcomes.used
  }

  /** Whether gradients are too old, like those of segments that are not carried over any more. */
  #isStale(generation: number): boolean {
    const { init, node, now, warn } = this.#options
    const { updates, replacedAt } = this.#places[generation & 1]
    const isKnown = generation === this.#generation || generation === this.#generation - 1
    const isRecent = node.predictor.id.updates - updates <= MAX_BEHIND || now() - replacedAt <= init.carry * init.period
    const isStale = !isKnown || !isRecent
    this.#adds.all++
    if (isStale) this.#adds.stale++
    if (this.#adds.all >= WARNING_ADDS) {
      const { all, stale } = this.#adds
      if (stale >= all / 2)
        warn(
          `${stale} of ${all} sums of the program were too old, and are computed again: use a larger --batch, or local steps`
        )
      Object.assign(this.#adds, { all: 0, stale: 0 })
    }
    return isStale
  }

  #reply(memory: SharedMemory, outcome: number): void {
    const { node, inputs, send } = this.#options
    const { predictor, relearnable = [0, 0] as const } = node
    if (predictor !== this.#written) {
      // The program uses the other parameters until it has read this reply.
      this.#written = predictor
      this.#generation++
      const place = this.#generation & 1
      this.#places[place] = { updates: predictor.id.updates, replacedAt: NEVER }
      copyInto(memory.parameters[place], predictor.parameters)
      const { unsent } = node
      if (unsent)
        for (const [k, block] of memory.parameters[place].entries()) subtract(block, unsent.sum[k], unsent.count)
    }
    const { updates, digest } = predictor.id
    const missing = Math.max(0, node.needed - node.gradients)
    send(
      encodeAdded({
        outcome,
        generation: this.#generation,
        updates,
        next: inputs.next,
        again: relearnable,
        missing,
        digest
      })
    )
  }

  #copyAverage(memory: SharedMemory): void {
    const { node, averaging } = this.#options
    const { average, parameters } = node.predictor
    copyInto(memory.average, averaging.read?.(average, parameters) ?? average)
  }
}

/** What the program has contributed and the node has not sent stays in its copy. */
function subtract(block: Float32Array, unsent: Float32Array, count: number): void {
  for (let i = 0; i < block.length; i++) block[i] -= unsent[i] / count
}

/** Blocks that predictors carry besides the parameters are left out. */
function copyInto(blocks: Blocks, source: Blocks): void {
  for (const [k, block] of blocks.entries()) block.set(source[k])
}
