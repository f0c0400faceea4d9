/**
 * ADMB on the simulated network: the very AdmbNode that real peers run, its frames encoded and decoded as between them.
 * `admb` decides by origin, `admb-sender` by the paper's letter (and so without carry-over).
 */
import { formatId, isFragment, type Precedence, type Predictor, type PredictorId } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'
import { Slab } from '../engine/slab.js'
import { Disk } from '../faults/disk.js'
import type { LearningNode } from '../learning-node.js'
import type { Algorithm, AlgorithmFactory, World } from '../world.js'

interface Site {
  node: LearningNode
  incarnation: number
  /** Nodes with which it has a session. */
  neighbours: number[]
  /** Neighbours whose link is busy, so that a frame waits. */
  readonly waiting: Set<number>
  readonly disk: Disk
  ticks: number
}

const MOST_SHARED = 4096

/** The newest predictors, which the nodes that adopt them share. Older ones are made again where somebody still needs them. */
class Shared {
  readonly #predictors = new Map<string, Predictor>()

  add(predictor: Predictor): void {
    this.#predictors.set(formatId(predictor.id), predictor)
    if (this.#predictors.size > MOST_SHARED) {
      this.#predictors.delete(this.#predictors.keys().next().value as string)
    }
  }

  get(id: PredictorId): Predictor | undefined {
    return this.#predictors.get(formatId(id))
  }
}

/** The start as if that node had made it. */
function ownStart(start: Predictor, origin: string): Predictor {
  return { ...start, id: { ...start.id, updates: 1, origin, incarnation: 1 } }
}

export const admb: AlgorithmFactory = world => run(world, 'origin')
export const admbSender: AlgorithmFactory = world => run(world, 'sender')

function run(world: World, precedence: Precedence): Algorithm {
  const { topology, recipe, start, batch, labels, scenario } = world
  const carry = precedence === 'sender' ? 0 : world.carry
  const { layout } = world.learner
  const shared = new Shared()
  const slab = new Slab()
  const create = (index: number, incarnation: number) =>
    world.createNode(index, {
      ...recipe,
      self: labels[index],
      incarnation,
      layout,
      initial: scenario.starts === 'distinct' ? ownStart(start, labels[index]) : start,
      batch,
      carry,
      precedence,
      fragmentBytes: scenario.fragmentBytes,
      known: world.sharesPredictors ? id => shared.get(id) : undefined,
      allocate: length => slab.allocate(length)
    })
  const sites: Site[] = topology.neighbours.map((_, index) => ({
    node: create(index, 1),
    incarnation: 1,
    neighbours: [],
    waiting: new Set(),
    disk: new Disk(scenario.diskTime),
    ticks: 0
  }))
  let adoptions = 0
  let lost = 0

  /** Says the newest once the link can take it. */
  const speak = (index: number, neighbour: number) => {
    const { node, waiting } = sites[index]
    let frame: Uint8Array | undefined
    do {
      const free = world.freeAt(index, neighbour)
      if (free > world.now) {
        if (!waiting.has(neighbour)) world.after(free - world.now, index, neighbour)
        waiting.add(neighbour)
        return
      }
      frame = node.frame(neighbour)
      if (frame) world.send(index, neighbour, frame, frame.length)
    } while (frame && isFragment(frame))
  }
  const settle = (index: number) => {
    const { node, neighbours } = sites[index]
    for (const effect of node.takeEffects()) {
      if (effect.kind === 'adopted') {
        adoptions++
        world.holds(index, effect.predictor.id, 'adopted')
      } else if (effect.kind === 'updated') {
        shared.add(effect.predictor)
        world.holds(index, effect.predictor.id, 'updated')
      }
    }
    for (const neighbour of neighbours) speak(index, neighbour)
  }
  return {
    serving: (index): Blocks => sites[index].node.predictor.average,
    input(index, examples) {
      const { node } = sites[index]
      world.learner.addGradient(node.predictor.parameters, examples, 0, examples.size, node.accumulator)
      node.added(examples.size)
      settle(index)
    },
    tick(index) {
      const site = sites[index]
      site.node.tick()
      if (++site.ticks % scenario.checkpoint === 0) site.disk.write(site.node.snapshot(), world.now)
      settle(index)
    },
    receive(to, from, message) {
      sites[to].node.receive(from, message as Uint8Array)
      settle(to)
    },
    timer(index, neighbour) {
      sites[index].waiting.delete(neighbour)
      speak(index, neighbour)
    },
    connect(index, neighbour, session) {
      const site = sites[index]
      site.node.connect(neighbour, session, labels[neighbour])
      if (!site.neighbours.includes(neighbour)) site.neighbours.push(neighbour)
      // Before time begins nobody speaks.
      if (world.now > 0 && world.isUp(index)) settle(index)
    },
    disconnect(index, neighbour) {
      const site = sites[index]
      site.node.disconnect(neighbour)
      site.neighbours = site.neighbours.filter(other => other !== neighbour)
      if (world.now > 0 && world.isUp(index)) settle(index)
    },
    crash(index) {
      const site = sites[index]
      lost += site.node.ownGradients + site.node.discarded
      site.neighbours = []
      site.waiting.clear()
      site.disk.stop(world.now)
    },
    restart(index, disk) {
      const site = sites[index]
      // The incarnation is stored beside the predictor; a new identity counts its own from the start.
      if (disk === 'lost') {
        site.disk.erase()
        site.incarnation = 1
      } else site.incarnation++
      const { stored } = site.disk
      const bytes = stored && site.node.save(stored)
      site.node = create(index, site.incarnation)
      if (bytes) {
        site.node.restore(bytes)
        site.disk.reread(site.node.snapshot())
      }
      world.holds(index, site.node.predictor.id, 'restarted')
    },
    tally: () => ({
      updates: Math.max(...sites.map(({ node }) => node.predictor.id.updates)),
      adoptions,
      discarded: lost + sites.reduce((sum, { node }) => sum + node.discarded, 0)
    })
  }
}
