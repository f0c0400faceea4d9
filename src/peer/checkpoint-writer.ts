/** Stores the checkpoints that the learner thread posts, one after the other. */
import type { Store } from '../storage/index.js'
import type { JournalWriter } from './journal-writer.js'
import type { LearnerHandle } from './learner-handle.js'
import type { CheckpointBlocks, FromLearner } from './thread-messages.js'

export interface CheckpointWriterOptions {
  readonly store: Store
  readonly journal: JournalWriter
  readonly learner: LearnerHandle
  /** The peer must not send anything that it would forget. */
  readonly onFailure: (error: Error) => void
}

type Checkpoint = Extract<FromLearner, { readonly kind: 'checkpoint' | 'checkpoint-steps' }>

export class CheckpointWriter {
  readonly #options: CheckpointWriterOptions
  #writing: Promise<void> = Promise.resolve()

  constructor(options: CheckpointWriterOptions) {
    this.#options = options
  }

  /** Stores a checkpoint after the one before, and tells the learner when that has ended. */
  write(checkpoint: Checkpoint): void {
    this.#writing = this.#write(checkpoint, this.#writing)
  }

  /** Resolves when all checkpoints so far have been stored, or could not be stored. */
  stored(): Promise<void> {
    return this.#writing
  }

  async #write(checkpoint: Checkpoint, before: Promise<void>): Promise<void> {
    const { store, journal, learner, onFailure } = this.#options
    try {
      await before
      await journal.durable
      if (checkpoint.kind === 'checkpoint-steps') await store.saveSteps(checkpoint)
      else await store.save({ ...checkpoint, blocks: this.#blocksOf(checkpoint) })
    } catch (error) {
      onFailure(error as Error)
    } finally {
      learner.post({ kind: 'stored' })
    }
  }

  async *#blocksOf(checkpoint: CheckpointBlocks): AsyncGenerator<Uint8Array> {
    if ('blocks' in checkpoint) yield* checkpoint.blocks
    else {
      for (let index = 0; index < checkpoint.count; index++)
        yield await this.#options.learner.checkpointBlock(checkpoint.checkpoint, index)
    }
  }
}
