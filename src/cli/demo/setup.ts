/** Prepares the demo's peers: identities, ports, addresses of the others, options. */
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:net'
import { join } from 'node:path'
import type { Command } from 'commander'
import { encodeIdentityKey, generateIdentityKey, peerIdOf } from '../../network/index.js'
import { Store } from '../../storage/index.js'
import { createTask } from '../../task/task.js'
import { givenTo } from '../options/option.js'
import { taskOptions } from '../options/settings.js'
import type { Flags } from '../options/table.js'
import type { Place } from './cluster.js'
import { PEERS } from './stage.js'

/** T of the peers in milliseconds: less than the default, because they share a machine. */
const PERIOD_MS = 50

/** Inputs per second of a stream that waits for the stage. */
const HELD = 1e-9

/** Five state directories with identities, free ports, and for each peer the addresses of those before it. */
export async function setup(scratch: string, flags: Flags<'demo'>, command: Command): Promise<Place[]> {
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
  const config = await configFile(scratch, flags, command)
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

/** Writes the options that the peers share to a configuration file. */
async function configFile(scratch: string, flags: Flags<'demo'>, command: Command): Promise<string> {
  const { stream } = await createTask(taskOptions(flags), 'peer')
  const limit = stream?.maxRows === undefined ? {} : { limit: Math.ceil(stream.maxRows / PEERS) }
  const given = givenTo(command, row => (row.for as readonly string[]).includes('peer'))
  const { data, passes, batch } = flags
  const { http: _http, config: _config, json: _json, ...shared } = given
  const options = { data, passes, batch, period: PERIOD_MS, ...shared, ...limit, rate: HELD }
  const file = join(scratch, 'peers.yaml')
  await writeFile(
    file,
    Object.entries(options)
      .map(([key, value]) => `${key}: ${JSON.stringify(value)}\n`)
      .join('')
  )
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
