/** The definition of a simulated algorithm: everything that the registry, the bounds and the reports need. */
import type { AveragingName } from '../../src/learning/index.js'
import type { AlgorithmFactory } from '../world.js'

export interface AlgorithmDefinition {
  readonly create: AlgorithmFactory
  /** One line for help texts. */
  readonly help: string
  /** Paper, and algorithm or section in it. */
  readonly source: string
  /** What its paper predicts with: `none` is the newest predictor w_j, `uniform` the average of all. */
  readonly average: Extract<AveragingName, 'none' | 'uniform'>
  /** Whether the papers on distributed mini-batches have it, or name it as a variant, or it is an algorithm of others. */
  readonly family: 'papers' | 'variants' | 'field'
  /** Whether nodes step on copies of their own, which dual averaging cannot do. @default false */
  readonly makesLocalSteps?: boolean
  /** Series colour of its lines in plots; each algorithm of a family has a different one. */
  readonly series: 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8
  /** The regret bound; undefined if the papers prove none. */
  readonly bound?: AlgorithmBound
  /** Lower bound of the memory that a run needs, in bytes. @default unknown, and small */
  readonly memory?: (size: RunSize) => number
}

/** The keys of a scenario on which its memory depends. */
export interface RunSize {
  readonly nodes: number
  readonly inputs: number
  readonly checks: boolean
}

interface AlgorithmBound {
  /** Rate of updates that the theorem guarantees while nothing fails. */
  pace(terms: NetworkTerms): UpdatePace
  /** Whether learning depends on messages, and so on their delays and losses. */
  readonly usesNetwork: boolean
  /** Whether it holds only if all nodes receive inputs at the same rate. @default false */
  readonly needsEqualRates?: boolean
  /** When the bound holds: under any faults, in runs without faults, or for the inputs of good periods. */
  readonly scope: 'always' | 'fault-free' | 'good-periods'
}

export interface UpdatePace {
  /** b: gradients per update. */
  readonly batch: number
  /** ν: inputs of the whole network from one update until every node holds the next one. */
  readonly inputsPerUpdate: number
  /** Independent learners, each with an equal share of the inputs. */
  readonly learners: number
}

interface NetworkTerms {
  readonly nodes: number
  /** b */
  readonly batch: number
  /** Edges on the longest path of the tree, and on the longest from node 0. */
  readonly diameter: number
  readonly height: number
  /** T in virtual milliseconds. */
  readonly period: number
  /** t_u in virtual milliseconds. */
  readonly updateTime: number
  /** Largest delay of a message in virtual milliseconds. */
  readonly maxDelay: number
  /** M: inputs of all nodes per virtual millisecond. */
  readonly rate: number
}
