/** Peers that join a network with a large predictor download it in parts. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { agree, type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

/** Bytes per second of the slow line, and the time between two pieces in ms. */
const RATE = 3_000_000
const STEP_MS = 50

/** A line to a port of this machine that passes on so many bytes per second. */
async function slowLine(port: number): Promise<Server> {
  const passSlowly = (from: Socket, to: Socket) => {
    from.on('data', bytes => {
      to.write(bytes)
      from.pause()
      setTimeout(() => from.resume(), Math.max(STEP_MS, (1000 * bytes.length) / RATE))
    })
    from.on('close', () => to.destroy()).on('error', () => to.destroy())
  }
  const server = createServer(client => {
    const target = connect(port, '127.0.0.1')
    client.on('error', () => target.destroy()).pipe(target)
    passSlowly(target, client)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return server
}

describe('a peer that joins a network with a large predictor', function () {
  this.timeout(180_000)
  const processes = new PeerProcesses()
  let line: Server | undefined
  afterEach(async () => {
    line?.close()
    line = undefined
    await processes.stop()
  })

  async function options(): Promise<string[]> {
    const model = join(await processes.scratch(), 'large.yaml')
    await writeFile(model, 'model: mlp\nhidden: [1200, 1200]\n')
    const stream = ['--data', 'digits', '--rate', '40', '--passes', '100', '--batch', '60']
    return ['--model', model, '--rule', 'momentum', '--backend', 'cpu', ...stream]
  }

  /** A state directory with an update that nobody else has, so that no steps lead to the predictors of others. */
  async function learnedAlone(common: readonly string[]): Promise<string> {
    const dir = join(await processes.scratch(), 'state')
    const alone = await processes.start(...common, '--dir', dir).ready()
    await until('an update of its own', () => alone.latest.updates > 0)
    assert.equal(await alone.stop(), 0)
    return dir
  }

  const logs = (peer: PeerProcess, text: string) => peer.logs.filter(({ msg }) => msg.includes(text)).length

  it('takes its parts, and then steps', async () => {
    const common = await options()
    const dir = await learnedAlone(common)
    const first = await processes.start(...common).ready()
    await until('a better predictor', () => first.latest.updates > 2)
    const joining = await processes.start(...common, '--dir', dir, '--peer', first.latest.addresses[0]).ready()
    await until('the predictor', () => logs(joining, 'received a predictor with') > 0)
    const { updates } = joining.latest
    await until('further updates', () => joining.latest.updates > updates)
    await until('one predictor', () => agree([first, joining]))
    assert.equal(logs(joining, 'received a predictor with'), 1)
  })

  it('resumes after a kill with the parts that it has', async () => {
    const common = await options()
    const dir = await learnedAlone(common)
    const first = await processes.start(...common).ready()
    await until('a better predictor', () => first.latest.updates > 2)
    const [address] = first.latest.addresses
    line = await slowLine(Number(/tcp\/(\d+)/.exec(address)?.[1]))
    const { port } = line.address() as AddressInfo
    const joining = [
      ...common,
      '--log-level',
      'debug',
      '--dir',
      dir,
      '--peer',
      address.replace(/tcp\/\d+/, `tcp/${port}`)
    ]
    const killed = await processes.start(...joining).ready()
    await until('a part on the disk', () => logs(killed, 'of a predictor has arrived') > 0)
    await killed.stop('SIGKILL')
    assert.equal(logs(killed, 'received a predictor with'), 0)
    const restarted = await processes.start(...joining).ready()
    await until('the rest', () => logs(restarted, 'received a predictor with') > 0)
    assert.equal(logs(restarted, 'the download of a predictor resumes'), 1)
    await until('one predictor', () => agree([first, restarted]))
  })
})
