/** Errors before the server starts. */
import { CodedError } from '../base/errors.js'

/** The port is in use, or the address does not belong to this machine. */
export class HttpListenError extends CodedError {
  static override readonly code = 'ERR_HTTP_LISTEN'
  constructor(host: string, port: number, cause: NodeJS.ErrnoException) {
    const remedy =
      cause.code === 'EADDRINUSE'
        ? 'the port is in use: give another with --http HOST:PORT, or --http off'
        : `${cause.code ?? cause.message}: give an address of this machine with --http HOST:PORT`
    super(`cannot serve HTTP on ${host}:${port}: ${remedy}`)
  }
}

/** Other machines could reach the server, and it has no token. */
export class HttpTokenRequiredError extends CodedError {
  static override readonly code = 'ERR_HTTP_TOKEN_REQUIRED'
  constructor(host: string) {
    const remedy = 'create one with admb keygen token --out http.token and give --http-token-file http.token'
    super(`HTTP on ${host} is open to other machines and needs a token: ${remedy}`)
  }
}

/** The certificate or its key cannot be used. */
export class HttpCertificateError extends CodedError {
  static override readonly code = 'ERR_HTTP_CERTIFICATE'
  constructor(reason: string) {
    super(
      `cannot serve HTTPS (${reason}): give a PEM certificate and its unencrypted key with --http PORT,cert=FILE,key=FILE`
    )
  }
}
