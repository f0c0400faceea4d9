/** Errors of layer files. Each message states in one line what failed and what to do. */
import { CodedError } from '../../base/errors.js'

/** A layer file or its commit record is damaged, or belongs to another model. */
export class DamagedLayersError extends CodedError {
  static override readonly code = 'ERR_LAYERS_DAMAGED'
  constructor(folder: string, what: string) {
    super(
      `the layer file in ${folder} is damaged (${what}): restore the directory from a backup, or train in another --dir`
    )
  }
}

/** A layer file cannot be written: the disk is full or read-only, or a limit is exceeded. */
export class LayersWriteError extends CodedError {
  static override readonly code = 'ERR_LAYERS_WRITE'
  constructor(folder: string, cause: string) {
    super(`cannot write the layer file in ${folder} (${cause}): free some space or fix its permissions`)
  }
}
