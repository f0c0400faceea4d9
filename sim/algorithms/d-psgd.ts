/**
 * Decentralised parallel SGD (Lian et al., NeurIPS 2017). In each round a node averages its model with those of its neighbours,
 * and makes a step with its own gradients. It waits for its neighbours, so a dead one blocks it. What the paper does not need: a
 * node that waits sends its model again, and one that has lost its disk takes over the model and the round of a neighbour.
 */
import type { Predictor } from '../../src/admb/index.js'
import { type Algorithm, advance, bestOf, countIn, GradientAccumulator, type World } from '../world.js'
import type { AlgorithmDefinition } from './definition.js'
import { FIELD, meanOf, modelBytes, shareOf } from './mixing.js'

export const dPsgd: AlgorithmDefinition = {
  create,
  help: 'decentralised SGD: rounds in which neighbours on the tree average their models',
  source: 'Lian et al., "Can decentralized algorithms outperform centralized algorithms?" (NeurIPS 2017), D-PSGD',
  ...FIELD,
  series: 4
}

/** The model of a node at the start of a round. */
interface RoundModel {
  readonly round: number
  readonly predictor: Predictor
  /** Whether the sender waits for the receiver's model of this round. */
  readonly isRequest?: true
}

interface NodeState {
  current: RoundModel
  /** The previous round's model: a neighbour may be one round behind. */
  previous: RoundModel | undefined
  /** Models of neighbours for this round, and of those that are one round ahead. */
  models: Map<number, Predictor>
  early: Map<number, Predictor>
}

function create(world: World): Algorithm {
  const { neighbours, nodes } = world.topology
  const share = shareOf(world.batch, nodes)
  const bytes = modelBytes(world) + 8
  const own = neighbours.map(() => new GradientAccumulator(world.learner))
  const states = neighbours.map(
    (others): NodeState => ({
      current: { round: 0, predictor: world.start },
      previous: undefined,
      // All nodes start from the same model.
      models: new Map(others.map(other => [other, world.start])),
      early: new Map()
    })
  )
  /** Metropolis weights: doubly stochastic, so that the mean of all models is kept. */
  const weights = neighbours.map(others =>
    others.map(other => 1 / (1 + Math.max(others.length, neighbours[other].length)))
  )
  let used = 0

  const stepIfComplete = (node: number): void => {
    const state = states[node]
    const others = neighbours[node]
    if (own[node].count < share || state.models.size < others.length) return
    const { round, predictor } = state.current
    const around = others.map(other => state.models.get(other) as Predictor)
    const rest = 1 - weights[node].reduce((sum, weight) => sum + weight, 0)
    const mixed = meanOf([predictor, ...around], [rest, ...weights[node]], round)
    const batch = own[node].take()
    used += batch.count
    state.previous = state.current
    state.current = { round: round + 1, predictor: advance(world, node, mixed, batch) }
    state.models = state.early
    state.early = new Map()
    for (const other of others) world.send(node, other, state.current, bytes)
    stepIfComplete(node)
  }
  return {
    serving: node => states[node].current.predictor,
    input(node, examples) {
      own[node].add(states[node].current.predictor.parameters, examples)
      stepIfComplete(node)
    },
    tick(node) {
      const { current, models } = states[node]
      if (own[node].count < share) return
      for (const other of neighbours[node])
        if (!models.has(other)) world.send(node, other, { ...current, isRequest: true } satisfies RoundModel, bytes)
    },
    receive(to, from, message) {
      const { round, predictor, isRequest } = message as RoundModel
      const state = states[to]
      const ahead = round - state.current.round
      if (ahead === 1) state.early.set(from, predictor)
      else if (ahead === 0) {
        if (isRequest) world.send(to, from, state.current, bytes)
        state.models.set(from, predictor)
        stepIfComplete(to)
      } else if (ahead === -1 && isRequest && state.previous) world.send(to, from, state.previous, bytes)
      else if (ahead > 1) {
        own[to].take()
        states[to] = {
          current: { round, predictor },
          previous: undefined,
          models: new Map([[from, predictor]]),
          early: new Map()
        }
      }
    },
    timer: () => undefined,
    // Models of rounds are on the disk; what neighbours have sent is not.
    crash(node) {
      own[node].take()
      states[node] = { ...states[node], models: new Map(), early: new Map() }
    },
    restart(node, disk) {
      if (disk === 'kept') return
      states[node] = {
        current: { round: 0, predictor: world.start },
        previous: undefined,
        models: new Map(),
        early: new Map()
      }
    },
    totals: () => {
      const best = bestOf(states.map(({ current }) => current.predictor))
      return { updates: best.id.updates, adoptions: 0, used, held: countIn(own) }
    }
  }
}
