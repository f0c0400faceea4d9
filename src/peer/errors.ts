/** Errors of a peer and of requests to it. */
import { CodedError } from '../base/errors.js'

/** The learner thread failed, because of its data, its model or a bug. */
export class LearnerFailedError extends CodedError {
  static override readonly code: string = 'ERR_LEARNER_FAILED'
  /** Code of the error in the thread, if it has one. */
  override readonly code: string

  constructor({ reason, name, code }: { readonly reason: string; readonly name?: string; readonly code?: string }) {
    super(reason)
    this.name = name ?? 'LearnerFailedError'
    this.code = code ?? LearnerFailedError.code
  }
}

/** The inputs of a request are malformed or do not fit the model. */
export class RequestError extends CodedError {
  static override readonly code: string = 'ERR_REQUEST'
}

/** The budget of differential privacy is spent, so the peer learns nothing of the request, whatever its inputs. */
export class PrivacySpentError extends RequestError {
  static override readonly code = 'ERR_PRIVACY_SPENT'

  constructor() {
    super('the privacy budget of this peer is spent (--dp): it predicts, but learns no more')
  }
}

/** A request cannot be served now: too many requests are waiting, or the peer is stopping. */
export class UnavailableError extends CodedError {
  static override readonly code: string = 'ERR_UNAVAILABLE'
}

/** The peer stopped before it had learned all inputs of a request. */
export class PartlyLearnedError extends UnavailableError {
  static override readonly code = 'ERR_PARTLY_LEARNED'

  /** @param learned number of the first inputs of the request that were learned */
  constructor(readonly learned: number) {
    super(`the peer is stopping: it has learned the first ${learned} inputs of this request, and not the others`)
  }
}

/** A peer has learned alone, with another model or schema than the network that it can join now. The caller starts it again. */
export class OtherNetworkError extends CodedError {
  static override readonly code = 'ERR_OTHER_NETWORK'

  constructor(contact: string) {
    super(
      `${contact} belongs to a network with another model or schema: start this peer again without its state to join it`
    )
  }
}
