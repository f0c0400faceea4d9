/** Records a run as frames: after every event, or at equal distances of virtual time. */

import type { Fault } from '../../../sim/faults/schedule.js'
import type { ObservedRun, RunObserver } from '../../../sim/options.js'
import type { PredictorCause } from '../../../sim/world.js'
import { formatId, type PredictorId } from '../../admb/index.js'
import { describeFault } from './fault-sentences.js'
import { AWAY, type Frame, type NetworkShape, type PredictorEntry, type Report } from './messages.js'

/** Frames that are posted together, so that the page can draw the first ones while the run continues. */
const BATCH = 20
/** Limit of frames of a run with a frame for each event. */
const MAX_FRAMES = 4000

export class FrameRecorder {
  readonly #post: (report: Report) => void
  /** Virtual milliseconds between frames; 0: one for each event. */
  readonly #step: number
  readonly #numbers = new Map<string, number>()
  #run: ObservedRun | undefined
  #held = new Int32Array(0)
  #predictors: PredictorEntry[] = []
  #frames: Frame[] = []
  #events: string[] = []
  #count = 0
  #next = 0
  #last = 0

  constructor(step: number, post: (report: Report) => void) {
    this.#step = step
    this.#post = post
  }

  get observer(): RunObserver {
    return {
      onStart: run => this.#start(run),
      onPredictorChange: (_time, node, id, cause) => this.#changed(node, id, cause),
      onFault: (_time, fault) => this.#fault(fault),
      ...(this.#step === 0 && {
        beforeEvent: (time: number, describe: () => string) => this.#before(time, describe())
      }),
      afterEvent: time => this.#after(time)
    }
  }

  /** Records the last state, and posts what has not been posted. @param ending what ended the run */
  finish(ending?: string): void {
    if (ending !== undefined) this.#events.push(ending)
    this.#take(this.#last)
    this.#flush()
  }

  #start(run: ObservedRun): void {
    const { nodes, links, parents } = run.topology
    this.#run = run
    this.#held = new Int32Array(nodes)
    this.#predictors.push({ updates: 0, parent: undefined, origin: '' })
    const tree = links === undefined ? parents.flatMap((parent, node) => (parent < 0 ? [] : [parent, node])) : undefined
    const shape: NetworkShape = { nodes, tree }
    this.#post({ kind: 'start', shape })
  }

  #changed(node: number, id: PredictorId, cause: PredictorCause): void {
    const key = id.updates === 0 ? '' : formatId(id)
    let number = key === '' ? 0 : this.#numbers.get(key)
    if (number === undefined) {
      number = this.#numbers.size + 1
      this.#numbers.set(key, number)
      const parent = cause === 'updated' ? this.#held[node] : undefined
      this.#predictors.push({ updates: id.updates, parent, origin: id.origin })
    }
    this.#held[node] = number
  }

  #fault(fault: Fault): void {
    // Instead of the description of the event, which is for programs.
    if (this.#events.at(-1)?.startsWith('fault {')) this.#events.pop()
    this.#events.push(describeFault(fault))
  }

  #before(time: number, what: string): void {
    if (this.#count >= MAX_FRAMES) return
    // The state after the previous event, which a violation leaves without an end.
    if (this.#events.length > 0) this.#take(this.#last)
    this.#events.push(what)
    this.#last = time
  }

  #after(time: number): void {
    this.#last = time
    if (this.#step === 0 || time < this.#next) return
    while (this.#next <= time) this.#next += this.#step
    this.#take(time)
  }

  #take(time: number): void {
    const run = this.#run
    if (run === undefined) return
    const { count, loss, bestLoss } = run.losses
    const held = this.#held.map((number, node) => (run.isUp(node) ? number : AWAY))
    const frame = { time, inputs: count, regret: loss - bestLoss, held, edges: edgesOf(run), events: this.#events }
    this.#frames.push(frame)
    this.#count++
    this.#events = []
    if (this.#frames.length >= BATCH) this.#flush()
  }

  #flush(): void {
    this.#post({ kind: 'frames', frames: this.#frames, predictors: this.#predictors })
    this.#frames = []
    this.#predictors = []
  }
}

/** Edges that work in both directions. */
function edgesOf(run: ObservedRun): number[] {
  const edges: number[] = []
  for (let from = 0; from < run.topology.nodes; from++) {
    if (!run.isUp(from)) continue
    for (const to of run.neighbours(from)) {
      if (to > from && run.isUp(to) && !run.isCut(from, to) && !run.isCut(to, from)) edges.push(from, to)
    }
  }
  return edges
}
