/** Prepares the demo's peers: identities, ports, addresses of the others, options. */
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { encodeIdentityKey, generateIdentityKey, peerIdOf } from '../../network/index.js'
import { Store } from '../../storage/index.js'
import { createTask } from '../../task/task.js'
import type { DataFlags, LearningFlags } from '../options/options.js'
import { taskOptions } from '../options/task-options.js'
import type { Place } from './cluster.js'
import { PEERS } from './stage.js'

/** T of the peers in milliseconds: less than the default, because they share a machine. */
const PERIOD_MS = 50

/** Inputs per second of a stream that waits for the stage. */
const HELD = 1e-9

/** The demo's flags, which are passed on to its peers. */
export interface SharedFlags extends DataFlags, LearningFlags {
  readonly rate: number
  readonly json?: boolean
  readonly config?: string
  readonly http?: string
  readonly stay?: boolean
}

/** Five state directories with identities, free ports, and for each peer the addresses of those before it. */
export async function setup(scratch: string, flags: SharedFlags): Promise<Place[]> {
  const ports = await freePorts(PEERS)
  const homes: { id: string; dir: string; listen: string; address: string }[] = []
  for (let place = 0; place < PEERS; place++) {
    const dir = join(scratch, String(place))
    const key = await generateIdentityKey()
    const store = await Store.open(dir)
    await store.create(encodeIdentityKey(key))
    await store.close()
    const listen = `/ip4/127.0.0.1/tcp/${ports[place]}`
    homes.push({ id: peerIdOf(key), dir, listen, address: `${listen}/p2p/${peerIdOf(key)}` })
  }
  const config = await configFile(scratch, flags)
  return homes.map(({ id, dir, listen }, place) => {
    // The first peer joins no network, so it begins at once, and the others take over what it learns.
    const others = homes.slice(0, place).flatMap(home => ['--peer', home.address])
    const shard = `${place + 1}/${PEERS}`
    const name = `peer ${place + 1}`
    return {
      id,
      args: ['--config', config, '--name', name, '--shard', shard, '--dir', dir, '--listen', listen, ...others]
    }
  })
}

/** Writes the shared flags to a configuration file. */
async function configFile(scratch: string, flags: SharedFlags): Promise<string> {
  const { json: _json, config: _config, http: _http, stay: _stay, ...shared } = flags
  const { stream } = await createTask(taskOptions(flags), 'peer')
  const maxRows = stream?.maxRows
  const limit = maxRows === undefined ? undefined : Math.ceil(maxRows / PEERS)
  const options = Object.entries({ period: PERIOD_MS, ...shared, limit, rate: HELD }).flatMap(([name, value]) => {
    const key = name.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`)
    if (value === undefined || (name === 'constant' && value === true)) return []
    if (name === 'rule' || name === 'average') {
      const { name: word, ...rest } = value as { name: string }
      return [[key, [word, ...Object.entries(rest).map(([option, given]) => `${option}=${given}`)].join(',')]]
    }
    return [[key, Array.isArray(value) ? value.join(',') : value]]
  })
  const file = join(scratch, 'peers.yaml')
  await writeFile(file, options.map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`).join(''))
  return file
}

async function freePorts(count: number): Promise<number[]> {
  const servers = await Promise.all(
    Array.from({ length: count }, async () => {
      const server = createServer()
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject)
        server.listen(0, '127.0.0.1', resolve)
      })
      return server
    })
  )
  const ports = servers.map(server => (server.address() as { port: number }).port)
  await Promise.all(servers.map(server => new Promise(resolve => server.close(resolve))))
  return ports
}
