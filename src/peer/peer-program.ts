/** The main thread's end of a program that computes the gradients of a peer: it refuses other models, and passes messages on. */

import type { BlockLayout } from '../learning/index.js'
import type { Log } from '../network/types.js'
import type { Join } from '../program/messages.js'
import type { ProgramServer } from '../program/program-server.js'
import type { LearningSpec, ProgramModel } from '../task/learning-spec.js'
import type { LearnerHandle } from './learner-handle.js'
import type { ToPeer } from './thread-messages.js'

/** A program that computes gradients, as an option of a peer. */
export interface PeerProgram {
  readonly server: ProgramServer
  /** The parameters that its model starts from; undefined if the state directory holds newer ones. */
  readonly start?: readonly Float32Array[]
}

/** Messages of the learner thread for the program. */
export type ToProgram = Extract<ToPeer, { readonly kind: 'to-program' | 'refuse-program' }>

/** Connects the server of a program with the learner thread. */
export class ProgramLink {
  readonly #server: ProgramServer
  readonly #log: Log
  #hasJoined = false

  constructor(server: ProgramServer, spec: LearningSpec, learner: LearnerHandle, log: Log) {
    this.#server = server
    this.#log = log
    server.attach({
      joined: join => {
        const reason = mismatch(join, spec)
        if (reason !== undefined) return this.#refuse(reason)
        this.#hasJoined = true
        log('info', `${join.name} has joined, and computes the gradients`, {})
        learner.post({ kind: 'program-joined', memory: join.memory })
      },
      receive: (message, content) => learner.post({ kind: 'program', message, content }),
      lost: () => {
        if (!this.#hasJoined) return
        this.#hasJoined = false
        log('warn', 'the connection of the program has ended: this peer only relays until a program joins', {})
        learner.post({ kind: 'program-lost' })
      }
    })
  }

  /** What a person should know; undefined if a program computes gradients. */
  get problem(): string | undefined {
    return this.#server.problem()
  }

  handle(message: ToProgram): void {
    if (message.kind === 'to-program') this.#server.send(message.message)
    else this.#refuse(message.reason)
  }

  close(): void {
    this.#server.close()
  }

  #refuse(reason: string): void {
    this.#log('warn', `the program is refused: ${reason}`, {})
    this.#server.refuse(reason)
  }
}

/** Why a program cannot compute the gradients of a model. */
export function mismatch(
  { blocks, fingerprint }: Pick<Join, 'blocks' | 'fingerprint'>,
  spec: LearningSpec
): string | undefined {
  const { program } = spec as { readonly program?: ProgramModel }
  if (program === undefined)
    return `the network learns the model ${spec.model}, which needs no program: give another --dir or --peer`
  if (fingerprint !== program.fingerprint)
    return `its fingerprint is "${fingerprint}", and that of the network is "${program.fingerprint}": start the same program`
  const text = ({ name, length, vectors }: BlockLayout) => JSON.stringify([name, length, vectors])
  const other = blocks.find((block, k) => program.blocks[k] === undefined || text(block) !== text(program.blocks[k]))
  if (other === undefined && blocks.length === program.blocks.length) return undefined
  const [which] =
    other === undefined
      ? [`${blocks.length} parameters, not ${program.blocks.length}`]
      : [`"${other.name}" with ${other.length} numbers`]
  return `its model has ${which}, which the network does not learn: start the same model, or give another --dir`
}
