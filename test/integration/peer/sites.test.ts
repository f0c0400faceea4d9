/**
 * Several sites with ordinary files and no options but their label give what one process gives on all rows, whoever starts first, and
 * whatever each learned alone: every row is on the final lineage once.
 */
import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { Random } from '../../../sim/engine/random.js'
import { admb, admbJson } from '../../support/admb-command.js'
import { agree, type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

/** Rows of a shop whose revenue follows from its columns. Means and deviations differ from site to site. */
function shop(count: number, site: number, seed = 1): string[] {
  const random = new Random(100 * site + seed)
  return Array.from({ length: count }, () => {
    const visitors = 400 + 30 * site + 80 * random.normal()
    const discount = 0.002 + 0.001 * random.normal()
    const day = ['Mon', 'Tue', 'Sat'][random.below(3)]
    const revenue = 3 * visitors + 2e5 * discount + (day === 'Sat' ? 300 : 0) + 60 * random.normal()
    return `${visitors.toFixed(1)},${discount.toFixed(6)},${day},${revenue.toFixed(2)}`
  })
}

async function freePort(): Promise<number> {
  const server = createServer()
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as AddressInfo
  await new Promise(resolve => server.close(resolve))
  return port
}

const HEAD = 'visitors,discount,day,revenue'
const csv = (rows: readonly string[]) => `${HEAD}\n${rows.join('\n')}\n`
const ROW = { visitors: 512, discount: 0.003, day: 'Sat' }

describe('sites with files of their own', function () {
  this.timeout(180_000)
  const processes = new PeerProcesses()
  afterEach(() => processes.stop())

  const files = async (sizes: readonly number[]) => {
    const dir = await processes.scratch()
    const sites = sizes.map((size, i) => shop(size, i + 1))
    for (const [i, rows] of sites.entries()) await writeFile(join(dir, `${i}.csv`), csv(rows))
    await writeFile(join(dir, 'all.csv'), csv(sites.flat()))
    await writeFile(join(dir, 'new.csv'), csv(sizes.flatMap((_, i) => shop(1000, i + 1, 2))))
    return dir
  }
  const start = (dir: string, site: number, ...options: string[]) => {
    const own = ['--data', join(dir, `${site}.csv`), '--label', 'revenue', '--dir', join(dir, `site-${site}`)]
    return processes.start(...own, '--keep-journal', ...options)
  }
  const predicted = async (peer: PeerProcess) => {
    const headers = { 'content-type': 'application/json' }
    const body = JSON.stringify(ROW)
    const response = await fetch(`${peer.latest.http}/predict`, { method: 'POST', headers, body })
    return ((await response.json()) as { predictions: readonly { label: number }[] }).predictions[0].label
  }
  /**
   * All rows are on the lineage, the last of them too, and the loss is that of one process.
   * @param most maximum ratio of both losses
   */
  const check = async (dir: string, peers: readonly PeerProcess[], most = 1.02) => {
    await until(
      'all files are learned, and the peers agree',
      () => peers.every(({ latest }) => latest.ended) && agree(peers)
    )
    await until('nothing is left to learn', async () => {
      const settled = peers.every(({ latest: { gradients } }) => gradients.waiting === 0)
      const held = peers.reduce((sum, { latest: { gradients } }) => sum + gradients.available, 0)
      return settled && held === 0 && agree(peers)
    })
    const labels = await Promise.all(peers.map(predicted))
    assert.equal(new Set(labels).size, 1, `one predictor, but predictions ${labels}`)
    assert.deepEqual(
      peers.map(({ latest }) => latest.discarded),
      peers.map(() => 0)
    )
    for (const peer of peers) assert.equal(await peer.stop(), 0, peer.stderr)
    const dirs = peers.flatMap((_, site) => ['--dir', join(dir, `site-${site}`)])
    await admbJson(['audit', '--complete', ...dirs])
    const data = ['--data', join(dir, 'new.csv')]
    const together = await admbJson(['eval', '--dir', join(dir, 'site-0'), ...data])
    assert.equal(
      (
        await admb([
          'train',
          '--data',
          join(dir, 'all.csv'),
          '--label',
          'revenue',
          '--batch',
          '128',
          '--dir',
          join(dir, 'one')
        ])
      ).code,
      0
    )
    const alone = await admbJson(['eval', '--dir', join(dir, 'one'), ...data])
    assert.ok(
      together.loss <= most * alone.loss,
      `loss ${together.loss}, of one process ${alone.loss}, updates ${together.predictor.updates} and ${alone.predictor.updates}`
    )
  }

  it('learn one predictor, whichever starts first', async () => {
    for (const order of [
      [0, 1],
      [1, 0]
    ]) {
      const dir = await files([8000, 3000])
      const listen = ['--listen', `/ip4/127.0.0.1/tcp/${await freePort()}`]
      const address = listen[1]
      const peers: PeerProcess[] = []
      for (const site of order) {
        peers[site] = start(dir, site, ...(site === 0 ? listen : ['--peer', address]))
        // The second one waits for the first, or the first has learned its whole file.
        if (site === order[0] && site === 0) await peers[site].ready()
      }
      await Promise.all(peers.map(peer => peer.ready()))
      await check(dir, peers)
      await processes.stop()
    }
  })

  it('learn files of fewer rows than a batch', async () => {
    const dir = await files([40, 25])
    const first = await start(dir, 0).ready()
    const peers = [first, await start(dir, 1, '--peer', first.latest.addresses[0]).ready()]
    await check(dir, peers)
    assert.ok(peers[0].latest.predictor.updates > 0)
  })

  it('join the network with its schema, although they had begun alone', async () => {
    const dir = await files([8000, 3000])
    const listen = ['--listen', `/ip4/127.0.0.1/tcp/${await freePort()}`]
    const late = start(dir, 1, '--peer', listen[1], '--name', 'late')
    // It has waited 10 s for its spec and 10 s for a link.
    await until('it has learned its file alone', () => late.messages.length > 0 && late.latest.ended)
    assert.equal(late.logs.filter(({ msg }) => /no link for 10 s: this peer begins alone/.test(msg)).length, 1)
    const first = await start(dir, 0, ...listen).ready()
    await until('it has joined', () => late.latest.neighbours.length === 1 && first.latest.inputs === 8000)
    await until('names are known', () => first.latest.names?.[late.latest.id] === 'late')
    await check(dir, [first, late])
    const again = await start(dir, 1, '--name', 'late').ready()
    await until('it says where it resumes', () =>
      again.logs.some(({ msg }) => /1\.csv: resumes after 3000 rows, at update \d+$/.test(msg))
    )
  })

  it('learn again what a side learned alone while the network was divided', async () => {
    const dir = await files([8000, 5000, 3000])
    const pace = ['--rate', '800', '--period', '20']
    const first = await start(dir, 0, ...pace).ready()
    const rest = [1, 2].map(site => start(dir, site, ...pace, '--peer', first.latest.addresses[0]))
    const peers = [first, ...(await Promise.all(rest.map(peer => peer.ready())))]
    const ids = peers.map(({ latest }) => latest.id)
    await until('the three are linked', () => peers.every(({ latest }) => latest.neighbours.length > 0))
    await until('all have learned some rows', () => peers.every(({ latest }) => latest.inputs > 200))
    first.block(ids[1], ids[2])
    for (const peer of peers.slice(1)) peer.block(ids[0])
    await until('both sides have made updates of their own', () => {
      const [a, b] = [peers[0].latest, peers[1].latest]
      return (
        a.neighbours.length === 0 &&
        b.predictor.digest !== a.predictor.digest &&
        peers.every(({ latest }) => latest.inputs > 1800)
      )
    })
    for (const peer of peers) peer.block()
    // Rows that are learned again are in other batches each time: 1.003 to 1.021 in four runs.
    await check(dir, peers, 1.04)
  })

  it('lose no row of five sites when one is killed', async () => {
    const dir = await files([3000, 500, 2000, 1200, 800])
    const first = await start(dir, 0, '--rate', '300').ready()
    const join = (site: number) => start(dir, site, '--rate', '300', '--peer', first.latest.addresses[0])
    const rest = await Promise.all([1, 2, 3, 4].map(site => join(site).ready()))
    await until('all have learned some rows', () => rest.every(({ latest }) => latest.inputs > 100))
    await rest[1].stop('SIGKILL')
    rest[1] = await join(2).ready()
    await check(dir, [first, ...rest])
  })

  it('may lack a column or have a further one, and are told so; a contradiction names its columns alone', async () => {
    const dir = await files([1500, 600])
    const rows = shop(600, 2).map(row => row.split(','))
    const site = async (name: string, lines: readonly string[]) => {
      await writeFile(join(dir, name), `${lines.join('\n')}\n`)
      return join(dir, name)
    }
    const lacking = await site('lacking.csv', ['visitors,day,revenue', ...rows.map(([a, , c, d]) => `${a},${c},${d}`)])
    const further = await site('further.csv', [`${HEAD},note`, ...rows.map((row, i) => `${row},n${i}`)])
    const opposed = await site('opposed.csv', [HEAD, ...rows.map(([, b, c, d]) => `many,${b},${c},${d}`)])
    const first = await start(dir, 0).ready()
    const [address] = first.latest.addresses
    const others = [lacking, further].map(data =>
      processes.start('--data', data, '--label', 'revenue', '--peer', address)
    )
    const peers = [first, ...(await Promise.all(others.map(peer => peer.ready())))]
    await until('all have learned', () => peers.every(({ latest }) => latest.ended) && agree(peers))
    assert.deepEqual(
      peers.map(({ latest }) => [latest.inputs, latest.skipped]),
      [
        [1500, 0],
        [600, 0],
        [600, 0]
      ]
    )
    const lines = (peer: PeerProcess) => peer.logs.map(({ msg }) => msg).join('\n')
    assert.match(lines(peers[1]), /lacking\.csv lacks the column discount of the model, so it counts as missing/)
    assert.match(lines(peers[2]), /further\.csv: the model does not know the column note, so it is ignored/)
    const refused = processes.start('--data', opposed, '--label', 'revenue', '--peer', address)
    assert.notEqual(await refused.exit, 0)
    assert.match(refused.stderr, /opposed\.csv: "visitors" is a number in the network, and a category here: /)
    assert.doesNotMatch(refused.stderr, /discount|day/)
    const mislabelled = processes.start('--data', join(dir, '1.csv'), '--label', 'visitors', '--peer', address)
    assert.notEqual(await mislabelled.exit, 0)
    assert.match(mislabelled.stderr, /the network predicts "revenue", and --label is "visitors": give --label revenue/)
  })

  it('begin with a trained model, and one of them with standard input', async () => {
    const dir = await files([1500, 600])
    const trained = join(dir, 'site-0')
    const training = await admb(['train', '--data', join(dir, 'all.csv'), '--label', 'revenue', '--dir', trained])
    assert.equal(training.code, 0, training.stderr)
    const first = await start(dir, 0).ready()
    const options = ['--data', '-', '--format', 'csv', '--label', 'revenue']
    const second = processes.start(...options, '--peer', first.latest.addresses[0])
    second.child.stdin?.end(csv(shop(600, 2)))
    await second.ready()
    await until('both have learned', () => first.latest.ended && second.latest.ended && agree([first, second]))
    assert.equal(second.latest.inputs, 600)
    const labels = await Promise.all([first, second].map(predicted))
    assert.equal(labels[0], labels[1])
    // The model of the trained directory, which has b = 1.
    assert.ok(second.latest.updates > 2100 + 600)
    const alone = processes.start(...options)
    alone.child.stdin?.end(csv(shop(300, 1)))
    await until(
      'its schema follows from its first rows',
      () => alone.messages.length > 0 && alone.latest.inputs === 300
    )
  })

  it('join a network whose rows have no columns with nothing but its address', async () => {
    const first = await processes.start('--data', 'digits', '--shard', '1/2', '--rate', '50').ready()
    const [address] = first.latest.addresses
    const second = await processes
      .start('--data', 'digits', '--shard', '2/2', '--rate', '50', '--peer', address)
      .ready()
    await until('the second learns', () => second.latest.neighbours.length === 1 && second.latest.inputs > 0)
  })
})
