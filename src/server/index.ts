/** The module's public API: the HTTP server of a peer. */
export { HttpCertificateError, HttpListenError, HttpTokenRequiredError, UnknownRoleError } from './errors.js'
export { isLoopback } from './guards/host.js'
export type { HttpOptions, PageOptions, RoleRates, TlsFiles } from './options.js'
export { reserveAddress } from './reservation.js'
export { generateToken, ROLES, type Role, roleOf } from './roles.js'
export { type HttpServer, serveHttp, servePage } from './server.js'
