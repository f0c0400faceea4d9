/** The registry of simulated algorithms. A new algorithm is one file and one line of `algorithms`. */
import { admb, admbSender } from './admb.js'
import type { AlgorithmDefinition } from './definition.js'
import { dmb } from './dmb.js'
import { isolated } from './isolated.js'
import { mawo } from './mawo.js'
import { mawoDatabase } from './mawo-database.js'
import { mawoElection } from './mawo-election.js'
import { serial } from './serial.js'

export const algorithms = {
  serial,
  isolated,
  dmb,
  mawo,
  'mawo-election': mawoElection,
  'mawo-database': mawoDatabase,
  admb,
  'admb-sender': admbSender
} satisfies Readonly<Record<string, AlgorithmDefinition>>

export type AlgorithmName = keyof typeof algorithms
export const algorithmNames = Object.keys(algorithms) as readonly AlgorithmName[]
