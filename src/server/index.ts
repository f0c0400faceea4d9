/** The module's public API: the HTTP server of a peer. */

export { HttpTokenRequiredError } from './errors.js'
export { type HttpOptions, isLoopback, type TlsFiles } from './options.js'
export { generateToken, ROLES, type Role } from './roles.js'
export { type HttpServer, reserveAddress, serveHttp, servePage } from './server.js'
