/** The examples of docs/guides/migrating.md, with both peers of each on this machine. */
import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandSandbox, httpPort } from '../support/command-sandbox.js'
import { blocks } from '../support/documents.js'
import { hasPython, runPython } from '../support/python.js'

const PAGE = 'docs/guides/migrating.md'

describe('coming from another system', function () {
  this.timeout(180_000)
  let place: CommandSandbox
  before(() => {
    place = new CommandSandbox()
  })
  afterEach(() => place.kill())
  after(() => place.remove())

  const block = (name: string) => blocks(`migrating ${name}`, PAGE)[0]

  interface Status {
    readonly neighbours: readonly string[]
    readonly predictor: { readonly updates: number }
  }

  function statusAt(port: number): Status {
    return JSON.parse(place.run(`npx admb status --http ${port} --json`))
  }

  /** Starts both peers of a block, and waits until they are linked. @returns their HTTP ports */
  async function startPair(name: string): Promise<readonly [number, number]> {
    const [first, second] = block(name)
      .split('\n')
      .map(line => `${line.replace(/ --http \S+/, '')} --http 0`)
    const started = await place.start(first)
    const address = /--peer (\S+)/.exec(started)?.[1] as string
    const ports = [httpPort(started), httpPort(await place.start(second.replace(/\/ip4\S+/, address)))] as const
    while (statusAt(ports[1]).neighbours.length === 0) await sleep(100)
    return ports
  }

  async function haveLearned(ports: readonly number[], updates: number): Promise<void> {
    for (const port of ports) while (statusAt(port).predictor.updates < updates) await sleep(100)
  }

  it('Vowpal Wabbit: a model goes in, is learned further, and its weights are written by name', async () => {
    place.run(block('vw-model'))
    await haveLearned(await startPair('vw-peers'), 2)
    await place.interrupt()
    assert.match(place.run(block('vw-export')), /"feature":"a\^x","index":\d+,"weight":\d\.\d+/)
  })

  it('Flower: two programs teach two peers', async function () {
    if (!hasPython()) this.skip()
    const [here, there] = await startPair('flower-peers')
    const program = blocks('migrating flower-client', PAGE, 'python')[0]
    const printed = await runPython(program.replace(':7280', `:${here}`).replace(':7281', `:${there}`))
    const accuracies = /accuracy (\S+) (\S+)/.exec(printed)?.slice(1).map(Number) ?? []
    assert.ok(accuracies.length === 2 && Math.min(...accuracies) > 0.85, printed)
  })

  it('hivemind: two peers train a network', async () => {
    await haveLearned(await startPair('hivemind'), 2)
  })

  it('DISCO: peers share the schema of a table', async () => {
    place.run(block('disco-schema'))
    await haveLearned(await startPair('disco-peers'), 2)
  })
})
