/** The module's public API: the HTTP server of a peer. */

export { isLoopback } from './access.js'
export { HttpCertificateError, HttpListenError, HttpTokenRequiredError, UnknownRoleError } from './errors.js'
export type { HttpOptions, PageOptions, RoleRates, TlsFiles } from './options.js'
export { generateToken, ROLES, type Role, roleOf } from './options.js'
export { type HttpServer, reserveAddress, serveHttp, servePage } from './server.js'
