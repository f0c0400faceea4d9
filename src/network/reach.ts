/** The first steps of a diagnosis, which need neither keys nor libp2p: name resolution, route, open port. */
import { createSocket } from 'node:dgram'
import { lookup } from 'node:dns/promises'
import { isIPv6 } from 'node:net'
import { parseAddress, tcpEndOf } from './addresses.js'
import { type PortProbe, probePort } from './port-probe.js'

export type StepName = 'name' | 'route' | 'port' | 'network key' | 'noise' | 'allow-list' | 'protocol' | 'model'

/** Result of a step of the diagnosis. */
export interface Step {
  readonly name: StepName
  readonly ok: boolean
  readonly detail: string
  /** How to fix a failed step. */
  readonly remedy?: string
}

/** Records a passed step; only the first call per step counts. */
export type Pass = (name: StepName, detail: string) => void

export class StepFailedError extends Error {
  constructor(
    readonly step: StepName,
    message: string,
    readonly remedy: string
  ) {
    super(message)
  }
}

/**
 * Checks name, route and port of the first TCP endpoint of an address (of the relay, if there is one).
 * @returns what listens there, if it is the peer itself in plain TCP
 * @throws StepFailedError
 */
export async function reach(address: string, stepMs: number, pass: Pass): Promise<PortProbe | undefined> {
  const { host, port, isName, isPlain } = tcpEndOf(parseAddress(address))
  const ip = isName ? await resolve(host) : host
  pass('name', isName ? `${host} resolves to ${ip}` : `${host} is an IP address`)
  await checkRoute(ip, port)
  pass('route', `there is a route to ${ip}`)
  try {
    const probe = await probePort(ip, port, stepMs)
    pass('port', `port ${port} accepts connections`)
    return isPlain ? probe : undefined
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'EHOSTUNREACH' || code === 'ENETUNREACH') throw noRoute(ip, code)
    if (code === 'ECONNREFUSED') {
      throw new StepFailedError(
        'port',
        `connection to ${ip} port ${port} refused`,
        'start the peer, or correct the port'
      )
    }
    const remedy = 'open the port in all firewalls on the route, and forward it in a router in front of the peer'
    throw new StepFailedError('port', `no answer from ${ip} port ${port} (${code})`, remedy)
  }
}

async function resolve(host: string): Promise<string> {
  try {
    return (await lookup(host)).address
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    throw new StepFailedError(
      'name',
      `${host} cannot be resolved (${code})`,
      'check its spelling and the DNS configuration of this machine'
    )
  }
}

/** Connecting a datagram socket consults the routing table without sending anything. */
async function checkRoute(ip: string, port: number): Promise<void> {
  const socket = createSocket(isIPv6(ip) ? 'udp6' : 'udp4')
  try {
    await new Promise<void>((done, fail) => {
      socket.once('error', fail).once('connect', done)
      socket.connect(port, ip)
    })
  } catch (error) {
    throw noRoute(ip, (error as NodeJS.ErrnoException).code)
  } finally {
    socket.close()
  }
}

function noRoute(ip: string, code: string | undefined): StepFailedError {
  const remedy = 'connect this machine to that network (cable, VPN, IPv6), or use an address in one of its networks'
  return new StepFailedError('route', `no route to ${ip} (${code})`, remedy)
}
