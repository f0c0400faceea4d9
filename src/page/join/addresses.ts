/** The addresses at which a tab can connect to the peer that has served the page. */

/** Where the page was loaded from. */
export interface Origin {
  readonly protocol: string
  /** Name or address, IPv6 in brackets. */
  readonly hostname: string
  /** Empty for the default one. */
  readonly port: string
}

/** The address of the HTTP server, which takes WebSockets for its peer. @param id of the peer */
export function originAddress({ protocol, hostname, port }: Origin, id: string): string {
  const isSecure = protocol === 'https:'
  const host = hostname.replace(/^\[|\]$/g, '')
  const kind = host.includes(':') ? 'ip6' : /^[\d.]+$/.test(host) ? 'ip4' : 'dns'
  return `/${kind}/${host}/tcp/${port || (isSecure ? 443 : 80)}${isSecure ? '/tls' : ''}/ws/p2p/${id}`
}
