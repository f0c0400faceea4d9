/** The module's public API: the HTTP server of a peer. */

export { isLoopback } from './access.js'
export { HttpCertificateError, HttpListenError, HttpTokenRequiredError } from './errors.js'
export type { HttpOptions, PageOptions, TlsFiles } from './options.js'
export { generateToken, ROLES, type Role, type RoleRates, roleOf, UnknownRoleError } from './roles.js'
export { type HttpServer, reserveAddress, serveHttp, servePage } from './server.js'
