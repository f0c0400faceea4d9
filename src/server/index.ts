/** The module's public API: the HTTP server of a peer. */

export { isLoopback } from './access.js'
export { HttpTokenRequiredError } from './errors.js'
export type { HttpOptions, TlsFiles } from './options.js'
export { generateToken, ROLES, type Role } from './roles.js'
export { type HttpServer, reserveAddress, serveHttp, servePage } from './server.js'
