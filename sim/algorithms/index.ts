/** The registry of simulated algorithms. A new algorithm is one file and one line of `algorithms`. */
import { admb, admbSender, dmbOverlay, mawoOverlay } from './admb.js'
import { dPsgd } from './d-psgd.js'
import type { AlgorithmDefinition } from './definition.js'
import { dmb } from './dmb.js'
import { epidemic, gossip } from './gossip.js'
import { isolated } from './isolated.js'
import { mawo } from './mawo.js'
import { mawoDatabase } from './mawo-database.js'
import { mawoElection, mawoInvitation, mawoTree } from './mawo-election.js'
import { mawoAdd, mawoMailbox } from './mawo-store.js'
import { serial } from './serial.js'
import { allReduce, diLoCo, sparseLoCo } from './synchronised.js'

export const algorithms = {
  serial,
  isolated,
  dmb,
  mawo,
  'mawo-election': mawoElection,
  'mawo-tree': mawoTree,
  'mawo-invitation': mawoInvitation,
  'mawo-database': mawoDatabase,
  'mawo-add': mawoAdd,
  'mawo-mailbox': mawoMailbox,
  admb,
  'admb-sender': admbSender,
  'mawo-overlay': mawoOverlay,
  'dmb-overlay': dmbOverlay,
  gossip,
  epidemic,
  'd-psgd': dPsgd,
  'all-reduce': allReduce,
  diloco: diLoCo,
  sparseloco: sparseLoCo
} satisfies Readonly<Record<string, AlgorithmDefinition>>

export type AlgorithmName = keyof typeof algorithms
export const algorithmNames = Object.keys(algorithms) as readonly AlgorithmName[]
/** The algorithms of the papers. `compare` runs them unless others are named. */
export const paperAlgorithms = algorithmNames.filter(name => algorithms[name].family === 'papers')
