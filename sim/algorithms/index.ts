/** The algorithms of the papers by name. */
import type { AlgorithmFactory } from '../world.js'
import { admb, admbSender } from './admb.js'
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
} satisfies Record<string, AlgorithmFactory>

export type AlgorithmName = keyof typeof algorithms
export const ALGORITHMS = Object.keys(algorithms) as AlgorithmName[]
