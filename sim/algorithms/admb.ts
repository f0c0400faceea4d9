/**
 * ADMB on the simulated network: the very AdmbNode that real peers run, its frames encoded and decoded as between them.
 * `admb` decides by origin, `admb-sender` by the paper's letter (and so without carry-over).
 */
import { nameKey, type Precedence, type Predictor, type PredictorName, type Saved } from '../../src/admb/index.js'
import type { Blocks } from '../../src/learner/index.js'
import { Slab } from '../engine/slab.js'
import type { LearningNode } from '../learning-node.js'
import type { Algorithm, AlgorithmFactory, World } from '../world.js'

interface Site {
  node: LearningNode
  incarnation: number
  /** The last checkpoint: what a restarted node finds. */
  disk: Saved | undefined
  ticks: number
}

const CHECKPOINT_TICKS = 8
const MOST_SHARED = 4096

/** The newest predictors, which the nodes that adopt them share. Older ones are made again where somebody still needs them. */
class Shared {
  readonly #predictors = new Map<string, Predictor>()

  add(predictor: Predictor): void {
    this.#predictors.set(nameKey(predictor.name), predictor)
    if (this.#predictors.size > MOST_SHARED) {
      this.#predictors.delete(this.#predictors.keys().next().value as string)
    }
  }

  get(name: PredictorName): Predictor | undefined {
    return this.#predictors.get(nameKey(name))
  }
}

/** The start as if that node had made it. */
function ownStart(start: Predictor, origin: string): Predictor {
  return { ...start, name: { ...start.name, updates: 1, origin, incarnation: 1 } }
}

export const admb: AlgorithmFactory = world => run(world, 'origin')
export const admbSender: AlgorithmFactory = world => run(world, 'sender')

function run(world: World, precedence: Precedence): Algorithm {
  const { topology, recipe, start, batch, labels } = world
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
      initial: world.scenario.starts === 'distinct' ? ownStart(start, labels[index]) : start,
      batch,
      carry,
      precedence,
      known: world.sharesPredictors ? name => shared.get(name) : undefined,
      allocate: length => slab.allocate(length)
    })
  const sites: Site[] = topology.neighbours.map((_, index) => ({
    node: create(index, 1),
    incarnation: 1,
    disk: undefined,
    ticks: 0
  }))
  /** Sessions so far between each pair: a restarted node opens new ones. */
  let sessions = 0
  let adoptions = 0
  let lost = 0

  const connect = (a: number, b: number) => {
    const session = ++sessions
    sites[a].node.connect(b, session, labels[b])
    sites[b].node.connect(a, session, labels[a])
  }
  const settle = (index: number) => {
    const { node } = sites[index]
    for (const effect of node.takeEffects()) {
      if (effect.kind === 'adopted') {
        adoptions++
        world.holds(index, effect.predictor.name, 'adopted')
      } else if (effect.kind === 'updated') {
        shared.add(effect.predictor)
        world.holds(index, effect.predictor.name, 'updated')
      }
    }
    for (const neighbour of topology.neighbours[index]) {
      const frame = node.frame(neighbour)
      if (frame) world.send(index, neighbour, frame, frame.length)
    }
  }
  topology.parents.forEach((parent, index) => {
    if (parent >= 0 && world.isAlive(index) && world.isAlive(parent)) connect(index, parent)
  })
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
      if (++site.ticks % CHECKPOINT_TICKS === 0) site.disk = site.node.snapshot()
      settle(index)
    },
    receive(to, from, message) {
      sites[to].node.receive(from, message as Uint8Array)
      settle(to)
    },
    timer: () => undefined,
    crash(index) {
      const site = sites[index]
      lost += site.node.ownGradients + site.node.discarded
      for (const neighbour of topology.neighbours[index]) sites[neighbour].node.disconnect(index)
    },
    restart(index, disk) {
      const site = sites[index]
      // The incarnation is stored beside the predictor; a new identity counts its own from the start.
      if (disk === 'lost') {
        site.disk = undefined
        site.incarnation = 1
      } else site.incarnation++
      const stored = site.disk && site.node.save(site.disk)
      site.node = create(index, site.incarnation)
      if (stored) site.node.restore(stored)
      site.disk = site.node.snapshot()
      world.holds(index, site.node.predictor.name, 'restarted')
      for (const neighbour of topology.neighbours[index]) if (world.isAlive(neighbour)) connect(index, neighbour)
      settle(index)
    },
    tally: () => ({
      updates: Math.max(...sites.map(({ node }) => node.predictor.name.updates)),
      adoptions,
      discarded: lost + sites.reduce((sum, { node }) => sum + node.discarded, 0)
    })
  }
}
