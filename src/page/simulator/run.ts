/**
 * A run of a scenario in the worker, recorded as frames at equal distances of virtual time, beside one learner with the same
 * inputs.
 */

import type { Fault } from '../../../sim/faults/schedule.js'
import type { ObservedRun, RunObserver } from '../../../sim/options.js'
import { parseScenario, type Scenario } from '../../../sim/scenario.js'
import { simulate } from '../../../sim/simulate.js'
import type { PredictorCause } from '../../../sim/world.js'
import { formatId, type PredictorId } from '../../admb/index.js'
import { formatCount } from '../format.js'
import { AWAY, type Frame, type NetworkShape, type PredictorEntry, type RegretPoint, type Report } from './scene.js'

/** Number of frames of a run, and of points of the serial learner's regret. */
const FRAMES = 300

/** @param post called with each report @throws ScenarioError */
export function runScenario(
  values: Readonly<Record<string, unknown>>,
  source: string,
  post: (report: Report) => void
): void {
  const scenario = parseScenario(values, source)
  post({ kind: 'serial', points: serialRegret(scenario) })
  const { warmup, inputs, nodes, interval } = scenario
  const recorder = new FrameRecorder((warmup + (inputs / nodes) * interval) / FRAMES, post)
  const result = simulate(scenario, { observer: recorder.observer })
  recorder.finish(result.violations[0])
  post({ kind: 'result', result })
}

/** Regret of one learner that receives all inputs, which are those of the scenario's nodes, in the same order. */
function serialRegret(scenario: Scenario): RegretPoint[] {
  const points: RegretPoint[] = [[0, 0]]
  const step = Math.max(1, Math.floor(scenario.inputs / FRAMES))
  let run: ObservedRun | undefined
  const serial: Scenario = { ...scenario, algorithm: 'serial', checks: false }
  simulate(serial, {
    observer: {
      onStart: started => {
        run = started
      },
      onInput: inputs => {
        if (run === undefined || (inputs % step > 0 && inputs < scenario.inputs)) return
        const { loss, bestLoss } = run.losses
        points.push([inputs, loss - bestLoss])
      }
    }
  })
  return points
}

/** Frames that are posted together, so that the page can draw the first ones while the run continues. */
const BATCH = 20

class FrameRecorder {
  readonly #post: (report: Report) => void
  /** Virtual milliseconds between frames. */
  readonly #step: number
  readonly #numbers = new Map<string, number>()
  #run: ObservedRun | undefined
  #held = new Int32Array(0)
  #predictors: PredictorEntry[] = []
  #frames: Frame[] = []
  #events: string[] = []
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
      onFault: (_time, fault) => this.#events.push(describeFault(fault)),
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

  #after(time: number): void {
    this.#last = time
    if (time < this.#next) return
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

/** Faults of a run as sentences. */
function describeFault(fault: Fault): string {
  switch (fault.kind) {
    case 'crash':
      return `node ${fault.node} crashed`
    case 'restart':
      return `node ${fault.node} restarted${RESTARTS[fault.disk]}`
    case 'pause':
      return `node ${fault.node} was paused`
    case 'resume':
      return `node ${fault.node} continued`
    case 'hang':
      return `node ${fault.node} hung and left the tree`
    case 'unhang':
      return `node ${fault.node} returned to the tree`
    case 'join':
      return `node ${fault.node} joined`
    case 'leave':
      return `node ${fault.node} left`
    case 'partition': {
      const other = fault.sides.filter(side => side > 0).length
      const sides = `${formatCount(other)} of ${formatCount(fault.sides.length)} nodes`
      return `a partition cut off ${sides}${fault.oneWay ? ', in one direction' : ''}`
    }
    case 'heal':
      return 'the partition healed'
    case 'clog':
      return `the link from node ${fault.from} to node ${fault.to} was clogged`
    case 'unclog':
      return `the link from node ${fault.from} to node ${fault.to} was free again`
    case 'link':
      return `a link between nodes ${fault.from} and ${fault.to} was added`
    case 'unlink':
      return `node ${fault.from} closed its link to node ${fault.to}`
    default:
      return fault satisfies never
  }
}

const RESTARTS = {
  kept: '',
  lost: ' with an empty disk, as a new node',
  reset: ' without its state'
} as const
