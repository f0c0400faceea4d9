/**
 * Runs the commands of the guides: the tutorial with both peers on this machine, choosing with shorter runs, operating. Only
 * addresses and ports are changed.
 */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import type { PeerStatus } from '../../src/peer/index.js'
import { CommandSandbox, hasCurl, httpPort, untilStatus } from '../support/command-sandbox.js'
import { blocks, read } from '../support/documents.js'
import { PeerServer } from '../support/http-server.js'

const TUTORIAL = 'docs/tutorials/first-network.md'
const OPERATING = 'docs/guides/operating.md'
const UPGRADES = 'docs/guides/upgrades.md'
const MONITORING = 'docs/guides/monitoring.md'

describe('the guides', function () {
  this.timeout(300_000)
  let place: CommandSandbox
  beforeEach(() => {
    place = new CommandSandbox()
  })
  afterEach(() => place.remove())

  it('the tutorial: two peers learn together and predict', async function () {
    if (!hasCurl()) this.skip()
    const block = (name: string) => blocks(`tutorial ${name}`, TUTORIAL)[0]
    place.run(block('data'))
    assert.match(place.run(block('try')), /accuracy +[78]/)
    place.run(block('keys'))
    // Port 4280 may be in use: without `--listen` a peer then uses a free port.
    const first = await place.start(block('first').replace('0.0.0.0:7280', '0.0.0.0:0'))
    const address = /--peer (\S+)/.exec(first)?.[1] as string
    const second = await place.start(block('second').replace(/\/ip4\/192\.0\.2\.7\S+/, address))
    const here = (commands: string) => commands.replaceAll('192.0.2.7:7280', `127.0.0.1:${httpPort(first)}`)
    const token = readFileSync(join(place.folder, 'http.token'), 'utf8').trim()
    const reached = (peer: string, condition: (status: PeerStatus) => boolean) =>
      untilStatus(httpPort(peer), condition, { authorization: `Bearer ${token}` })
    await reached(first, ({ neighbours }) => neighbours.length > 0)
    // Either may be the one that computes the predictors.
    await Promise.any([first, second].map(peer => reached(peer, ({ adopted }) => adopted > 0)))
    const printed = place.run(`npx admb status --http 127.0.0.1:${httpPort(first)} --http-token-file http.token`)
    assert.match(printed, /neighbours +second \(12D3KooW/)
    const answer = JSON.parse(place.run(here(block('ask')))) as { predictions: { label: string }[] }
    assert.match(answer.predictions[0].label, /^(yes|no)$/)
    assert.match(place.run(here(block('learn'))), /"predictor":\{"updates":[1-9]/)
    const refused = here(block('ask')).replace('$(cat http.token)', 'guessed')
    assert.match(place.run(refused), /ERR_HTTP_TOKEN/)
    assert.match(place.run(`npx admb doctor --peer ${address} --network-key net.key`), /ok +model/)
    await place.interrupt()
    assert.match(place.run(block('after')), /accuracy +[5-9]/)
  })

  it('choosing: the commands work as written', () => {
    const pages = ['docs/guides/choosing.md', 'docs/guides/exchange.md']
    const sweeps = pages
      .flatMap(page => blocks('run', page))
      .map(text => place.run(text.replaceAll(/inputs=\d{5}/g, 'inputs=200').replace('seed=1..12', 'seed=1..2')))
    assert.equal(sweeps.length, 7)
    for (const printed of sweeps) assert.match(printed, /regret.*updates +used +MB sent.*\d+ runs, saved in/s)
    const rules = place.run(blocks('choosing rule', 'docs/guides/exchange.md')[0])
    assert.equal(rules.match(/accuracy/g)?.length, 3)
  })

  it('operating: the commands work as written', async () => {
    place.run(blocks('operating config', OPERATING)[0])
    place.run(blocks('operating keys', OPERATING)[0])
    assert.match(readFileSync(join(place.folder, 'allowed.txt'), 'utf8'), /^12D3KooW\w+\n$/)
    assert.match(place.run(blocks('operating invitations', OPERATING)[0]), /^admb-invitation-1~\S+$/m)
    const port = httpPort(await place.start(`${blocks('operating peer', OPERATING)[0]} --http 0`))
    const ready = async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200
    while (!(await ready())) await sleep(100)
    await place.interrupt()
    place.run(blocks('operating backup', UPGRADES)[0])
    assert.match(place.run(blocks('operating restore', UPGRADES)[0]), /accuracy +[5-9]/)
  })

  it('operating, and the dashboard: every metric exists', async () => {
    const served = await PeerServer.start()
    try {
      await fetch(`${served.url}/status`)
      const metrics = await (await fetch(`${served.url}/metrics`)).text()
      const known = new Set([...metrics.matchAll(/^(\w+?)(?:\{| )/gm)].map(match => match[1]))
      for (const [, name] of metrics.matchAll(/^# TYPE (\w+)/gm)) known.add(name)
      const dashboard = read('docs/grafana/admb.json')
      const { panels } = JSON.parse(dashboard) as { panels: { targets: { expr: string }[] }[] }
      assert.ok(panels.length > 10 && panels.every(({ targets }) => targets.every(({ expr }) => expr.length > 0)))
      const names = (text: string) =>
        [...text.matchAll(/\b(?:admb|process|nodejs)_[a-z0-9_]*[a-z0-9]\b/g)].map(match => match[0])
      const guide = names(read(MONITORING) + read('docs/reference/status.md'))
      const unknown = [...guide, ...names(dashboard)].filter(name => !known.has(name))
      assert.deepEqual(unknown, [])
      const own = [...known].filter(name => name.startsWith('admb_') && !/_(bucket|sum|count)$/.test(name))
      assert.deepEqual(
        own.filter(name => !guide.includes(name)),
        []
      )
    } finally {
      await served.stop()
    }
  })
})
