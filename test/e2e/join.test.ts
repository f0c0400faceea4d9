/** A peer in a tab: the commands and buttons of `docs/tutorials/browser-tab.md` in a real browser, with a peer under Node.js. Skipped without Chromium. */
import assert from 'node:assert/strict'
import { appendFileSync, mkdirSync, writeFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { imageRow } from '../../src/page/join/requests.js'
import type { NetworkSnapshot } from '../../src/view/index.js'
import { admb, admbJson } from '../support/admb-command.js'
import { launchIfFound, open, seriousProblems } from '../support/browser.js'
import { blocks, prose } from '../support/documents.js'
import { type PeerProcess, PeerProcesses, until } from '../support/peer-processes.js'
import { host } from '../support/static-host.js'

const ARTIFACTS = 'artifacts'
const DESKTOP = { viewport: { width: 1280, height: 900 } }
const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true }
const WAIT_MS = 60_000
const PIXELS = 28 * 28

describe('the join page', function () {
  this.timeout(240_000)
  const processes = new PeerProcesses()
  let browser: Browser
  let peer: PeerProcess
  let site: Server | undefined

  before(async function () {
    browser = (await launchIfFound()) ?? this.skip()
    mkdirSync(ARTIFACTS, { recursive: true })
    peer = await start('--passes', '100', '--batch', '32')
  })
  after(async () => {
    site?.close()
    await browser?.close()
    await processes.stop()
  })

  /** Starts the peer of the document. */
  function start(...more: string[]): Promise<PeerProcess> {
    const words = blocks('join', 'docs/tutorials/browser-tab.md')[0].split(' ')
    assert.deepEqual(words.slice(0, 2), ['admb', 'peer'])
    const given = words.slice(2).filter(word => more[0] !== '--shard' || !['--shard', '1/2'].includes(word))
    return processes.start(...given, ...more, '--name', 'node').ready()
  }
  const url = () => `${peer.latest.http}/join`
  const network = async () => (await (await fetch(`${peer.latest.http}/peers`)).json()) as NetworkSnapshot
  const row = async (name: string) => (await network()).peers.find(one => one.name === name && one.alive && !one.left)
  const shown = (what: string, condition: () => Promise<boolean>) => until(what, condition, WAIT_MS)
  const headings = (page: Page) => page.locator('h2:visible').allTextContents()
  const stateOf = (page: Page) => page.locator('#state').textContent()
  const press = (page: Page, name: string) => page.getByRole('button', { name, exact: true }).click()
  const joined = (page: Page) => shown('the tab has joined', async () => (await stateOf(page)) === 'Joined')
  async function visit(name: string, options = DESKTOP, script?: string) {
    const { page, errors } = await open(browser, url(), options, script)
    await page.locator('#name').fill(name)
    return { page, errors }
  }

  it('leads from a link to a learning tab, as its document says', async () => {
    const { page, errors } = await visit('tab 1')
    const buttons = [...prose('docs/tutorials/browser-tab.md').matchAll(/\*\*(.+?)\*\*/g)].map(match => match[1])
    assert.deepEqual(buttons, ['Join and learn', 'Leave'])
    await shown('what is learned', async () =>
      /predict the label \(10 classes\)/.test((await page.locator('#learned').textContent()) ?? '')
    )
    assert.deepEqual(await headings(page), ['Who sees what', 'Your data', 'Draw a digit'])
    await press(page, buttons[0])
    await joined(page)
    const makers = new Set<string>()
    await shown('the peer follows predictors of the tab, and the tab those of the peer', async () => {
      const [own, other] = await Promise.all([row('tab 1'), row('node')])
      assert.ok(other)
      makers.add(`node: ${other.predictor.origin === own?.id ? 'tab' : 'itself'}`)
      makers.add(`tab: ${own?.predictor.origin === other.id ? 'node' : 'itself'}`)
      return makers.has('node: tab') && makers.has('tab: node') && (own?.inputs ?? 0) > 0
    })
    await draw(page)
    await shown('a prediction', async () =>
      /^The network sees a \d\.$/.test((await page.locator('#guess').textContent()) ?? '')
    )
    await shown('its link', async () => (await page.locator('#tree .edge').count()) === 1)
    assert.deepEqual(await seriousProblems(page), [])
    await page.screenshot({ path: `${ARTIFACTS}/join.png`, fullPage: true })
    await press(page, buttons[1])
    await shown('the tab has left', async () => (await row('tab 1')) === undefined)
    assert.deepEqual(errors, [])
    await page.context().close()
  })

  it('works on a phone, and goes on as the same peer when it is loaded again', async () => {
    const { page, errors } = await visit('tab 2', PHONE)
    await press(page, 'Join and learn')
    await joined(page)
    await shown('rows are learned', async () => ((await row('tab 2'))?.inputs ?? 0) > 0)
    const before = await row('tab 2')
    assert.equal(before?.incarnation, 1)
    const width = (await page.evaluate('document.documentElement.scrollWidth')) as number
    assert.ok(width <= PHONE.viewport.width, `the page is ${width} pixels wide`)
    await page.reload()
    await shown('the neighbour knows at once that the tab has left', async () => (await row('tab 2')) === undefined)
    await page.locator('#name').fill('tab 2')
    await press(page, 'Join and learn')
    await joined(page)
    // Far below the time for which the row of a peer that has left is kept.
    await until('a second run', async () => (await row('tab 2'))?.incarnation === 2, 15_000)
    assert.equal((await row('tab 2'))?.id, before?.id)
    assert.ok(((await row('tab 2'))?.inputs ?? 0) >= (before?.inputs ?? 0))
    const second = await page.context().newPage()
    await second.goto(url())
    await press(second, 'Join and learn')
    await shown('a second tab with the same state is refused', async () =>
      /is in use/.test((await second.locator('#problem').textContent()) ?? '')
    )
    assert.deepEqual(errors, [])
    await page.context().close()
  })

  it('refuses a wrong file once, and learns from the right one', async () => {
    const { page, errors } = await visit('tab 3')
    const problem = page.locator('#problem')
    const choose = async (name: string, content: string | Buffer) => {
      await page.getByLabel('A file').check()
      await page.locator('#file').setInputFiles({ name, mimeType: 'text/csv', buffer: Buffer.from(content) })
      await press(page, (await page.locator('#join').textContent()) ?? '')
    }
    await choose('other.csv', `city,price\n${'Riga,1200\n'.repeat(200)}`)
    await shown('the problem', () => problem.isVisible())
    assert.match(
      (await problem.textContent()) ?? '',
      /^None of the first 32 rows fits what this network learns: choose other rows\. The reason is: /
    )
    assert.equal(await page.locator('#fed').textContent(), '')
    await choose('picture.csv', Buffer.from([0x50, 0x4b, 3, 4, 0, 0, 0xff, 0xfe, 10, 0, 200]))
    await shown('the problem', async () => /not text in UTF-8/.test((await problem.textContent()) ?? ''))
    const row = imageRow(new Uint8Array(PIXELS).fill(9), 3)
    await choose('right.libsvm', `${row}\n`.repeat(40))
    await shown('rows', async () =>
      /^40 rows learned; no further/.test((await page.locator('#fed').textContent()) ?? '')
    )
    assert.equal(await problem.isVisible(), false)
    assert.deepEqual(errors, [])
    await page.context().close()
  })

  it('does not keep its peer from stopping', async () => {
    const { page } = await visit('tab 4')
    await press(page, 'Join and learn')
    await joined(page)
    const asked = performance.now()
    await peer.stop()
    const ms = performance.now() - asked
    assert.ok(ms < 30_000, `stopped after ${ms} ms`)
    peer = await start('--passes', '100', '--batch', '32')
    await page.context().close()
  })

  it('can be another page, with the library for browsers', async () => {
    const [code] = blocks('join library', 'docs/tutorials/browser-tab.md', 'js')
    site = await host('dist/browser', '/', () => {
      const imports = JSON.stringify({ imports: { 'admb/browser': '/index.js' } })
      const program = code.replace('http://127.0.0.1:7280', peer.latest.http as string)
      return `<link rel="icon" href="data:," /><script type="importmap">${imports}</script><script type="module">${program}</script>`
    })
    const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`
    await peer.stop()
    const data = join(ARTIFACTS, 'bought.csv')
    writeFileSync(data, `age,income,region,bought\n${'18,1658,east,no\n49,2095,north,yes\n'.repeat(40)}`)
    peer = await processes
      .start('--data', data, '--label', 'bought', '--join-page', '--name', 'node', '--http', `origin=${origin}`)
      .ready()
    const { page: unused } = await visit('nobody')
    assert.deepEqual(await headings(unused), ['Who sees what', 'Your data'])
    await unused.context().close()
    const { page, errors } = await open(browser, origin)
    await shown('the row of the page is learned', async () => (await row('my page'))?.inputs === 1)
    await shown('both follow one predictor', async () => {
      const [own, other] = await Promise.all([row('my page'), row('node')])
      return own !== undefined && JSON.stringify(own.predictor) === JSON.stringify(other?.predictor)
    })
    assert.deepEqual(errors, [])
    await page.context().close()
  })

  it('joins a peer whose places are taken by peers that listen on TCP only', async () => {
    await peer.stop()
    peer = await start('--degree', '2', '--passes', '100', '--batch', '32')
    const [address] = peer.latest.addresses.filter(one => !one.includes('/ws'))
    const others = await Promise.all(
      ['second', 'third'].map(name =>
        processes.start('--data', 'digits', '--batch', '32', '--degree', '2', '--name', name, '--peer', address).ready()
      )
    )
    const links = async () => {
      const statuses = await Promise.all([peer, ...others].map(one => one.fetchStatus()))
      return statuses.flatMap(({ neighbours }) => neighbours)
    }
    await shown('a path of three', async () => (await links()).length === 4)
    const { page } = await visit('tab 5')
    await press(page, 'Join and learn')
    await joined(page)
    await shown('a path of four with the tab', async () => {
      const tab = (await row('tab 5'))?.id
      const all = await links()
      return tab !== undefined && all.length === 5 && all.filter(id => id === tab).length === 1
    })
    await page.context().close()
    await Promise.all(others.map(one => one.stop()))
  })

  it('joins a network with an allow-list by a link with an invitation', async () => {
    await peer.stop()
    const dir = await processes.scratch()
    const [inviter, member, allowed] = ['inviter', 'member', 'allowed.txt'].map(name => join(dir, name))
    for (const identity of [inviter, member])
      appendFileSync(allowed, (await admb(['keygen', 'identity', '--dir', identity])).stdout)
    peer = await start('--passes', '100', '--dir', member, '--allow', `${allowed},invited`)
    const { page, errors } = await open(browser, url(), DESKTOP)
    const problemOf = (page: Page) => page.locator('#problem').textContent()
    await shown('that an invitation is missing', async () => /only invited peers/.test((await problemOf(page)) ?? ''))
    const { link } = await admbJson(['invite', '--dir', inviter, '--url', peer.latest.http as string])
    // A change of the fragment alone would not load the page again.
    await page.goto('about:blank')
    await page.goto(link)
    await page.locator('#name').fill('guest')
    await press(page, 'Join and learn')
    await joined(page)
    await shown('rows of the guest are learned', async () => ((await row('guest'))?.inputs ?? 0) > 0)
    await page.reload()
    await page.locator('#name').fill('guest')
    await press(page, 'Join and learn')
    await joined(page)
    await shown('its second run', async () => (await row('guest'))?.incarnation === 2)
    const second = await open(browser, link, DESKTOP)
    await press(second.page, 'Join and learn')
    await joined(second.page)
    assert.deepEqual(errors, [])
    await second.page.context().close()
    await page.context().close()
  })

  it('links two tabs directly, so that they go on together when the peer under Node.js is killed', async () => {
    await peer.stop()
    peer = await start('--passes', '100', '--batch', '32')
    const tabs = await Promise.all(['tab 6', 'tab 7'].map(name => visit(name, DESKTOP, RECORD_WEBRTC)))
    for (const { page } of tabs) {
      await press(page, 'Join and learn')
      await joined(page)
    }
    for (const { page } of tabs) {
      await shown('a connection between the tabs', async () => (await webRtcOf(page)).isLinked)
      assert.deepEqual((await webRtcOf(page)).iceServers, [], 'no stranger learns of the tab')
    }
    await shown('one tree', async () => (await row('tab 6')) !== undefined && (await row('tab 7')) !== undefined)
    assert.deepEqual(
      tabs.flatMap(({ errors }) => errors),
      []
    )
    await peer.stop('SIGKILL')
    const updates = async (page: Page) =>
      Number(
        /Updates of the predictor([\d,]+)/
          .exec((await page.locator('#totals').textContent()) ?? '')?.[1]
          .replaceAll(',', '')
      )
    const before = await Promise.all(tabs.map(({ page }) => updates(page)))
    for (const [index, { page }] of tabs.entries()) {
      await shown('a link to the other tab', async () => {
        const headline = (await page.locator('#headline').textContent()) ?? ''
        return (await stateOf(page)) === 'Joined' && /^2 peers follow one predictor, 1 silent/.test(headline)
      })
      await shown('further updates', async () => (await updates(page)) > before[index] + 10)
    }
    // Leaving tells the other one at once, over the same link.
    await press(tabs[0].page, 'Leave')
    await shown('the other tab alone', async () => (await stateOf(tabs[1].page)) === 'Looking for a neighbour')
    for (const { page } of tabs) await page.context().close()
    peer = await start('--passes', '100', '--batch', '32')
  })

  it('connects a tab that is closed and opened again to the other tab', async () => {
    const tabs = [await visit('tab 8', DESKTOP, RECORD_WEBRTC), await visit('tab 9', DESKTOP, RECORD_WEBRTC)]
    for (const { page } of tabs) {
      await press(page, 'Join and learn')
      await joined(page)
    }
    const linked = (page: Page) => async () => (await webRtcOf(page)).isLinked
    for (const { page } of tabs) await shown('a connection between the tabs', linked(page))
    const [closed, other] = tabs.map(({ page }) => page)
    const context = closed.context()
    await closed.close()
    await shown('the end of the connection', async () => !(await linked(other)()))
    const opened = await context.newPage()
    await opened.goto(url())
    await opened.locator('#name').fill('tab 8')
    await press(opened, 'Join and learn')
    await joined(opened)
    for (const page of [opened, other]) await shown('a new connection', linked(page))
    await until('its second run', async () => (await row('tab 8'))?.incarnation === 2, WAIT_MS)
    await context.close()
    await other.context().close()
  })

  it('learns rows of a file and typed rows, and says which it refuses', async () => {
    await peer.stop()
    peer = await start('--shard', '1/90', '--batch', '4', '--passes', '1')
    await shown('the predictor of all its rows', async () => (await row('node'))?.predictor.updates === 25)
    const { page } = await visit('tab 3')
    await page.getByLabel('A file').check()
    const text = ['3 1:0.5 4:1', '4 1:0.25', 'eleven 1:0.5', '7 9:1'].join('\n')
    await page
      .locator('#file')
      .setInputFiles({ name: 'rows.libsvm', mimeType: 'text/plain', buffer: Buffer.from(text) })
    await press(page, 'Join and learn')
    await joined(page)
    const fed = () => page.locator('#fed').textContent()
    await shown('the end of the file', async () => /no further rows/.test((await fed()) ?? ''))
    assert.match((await fed()) ?? '', /^3 rows learned; 1 refused; the last reason: .*eleven/)
    await page.getByLabel('Typed rows').check()
    await page.locator('#typed').fill('2 3:0.5')
    await press(page, 'Learn')
    await shown('the row is learned', async () => (await fed()) === '1 rows learned.')
    await press(page, 'Predict only')
    await shown('a prediction', async () => /predicted \d/.test((await page.locator('#answers').textContent()) ?? ''))
    await shown('both end on one predictor, of the rows of both', async () => {
      const [own, other] = await Promise.all([row('tab 3'), row('node')])
      const isSame = own !== undefined && JSON.stringify(own.predictor) === JSON.stringify(other?.predictor)
      return isSame && own.inputs === 4 && own.predictor.updates === 26
    })
    await page.context().close()
  })

  for (const model of ['softmax', 'mlp', 'convnet']) {
    it(`learns the rows of a file with the model ${model} from the predictor of its peer on, and ends on one with it`, async () => {
      await peer.stop()
      peer = await start('--shard', '1/90', '--batch', '4', '--passes', '1', '--model', model)
      await shown('the predictor of all its rows', async () => (await row('node'))?.predictor.updates === 25)
      const digits = new Uint8Array(await (await fetch(`${peer.latest.http}/digits`)).arrayBuffer())
      const count = digits.length / (1 + PIXELS)
      const rows = Array.from({ length: 40 }, (_, digit) =>
        imageRow(digits.subarray(count + digit * PIXELS, count + (digit + 1) * PIXELS), digits[digit])
      )
      const { page, errors } = await visit('tab 10', DESKTOP, RECORD_TOTALS)
      await page.getByLabel('A file').check()
      await page
        .locator('#file')
        .setInputFiles({ name: 'rows.libsvm', mimeType: 'text/plain', buffer: Buffer.from(rows.join('\n')) })
      await press(page, 'Join and learn')
      await joined(page)
      await shown('one predictor, of the rows of both', async () => {
        const [own, other] = await Promise.all([row('tab 10'), row('node')])
        const isSame = own !== undefined && JSON.stringify(own.predictor) === JSON.stringify(other?.predictor)
        // The last update may be that of either.
        return isSame && own.inputs === 40 && own.predictor.updates > 25
      })
      assert.deepEqual(
        (await network()).peers.map(({ discarded }) => discarded),
        [0, 0]
      )
      const totals = (await page.evaluate('totals')) as string[]
      for (const text of totals) {
        const [, learned, updates] = /Rows learned(\d+).*Updates of the predictor(\d+)/.exec(text) ?? []
        assert.ok(learned === '0' || Number(updates) >= 25, `${learned} rows were learned after ${updates} updates`)
      }
      await draw(page)
      await shown('a prediction', async () =>
        /^The network sees a \d\.$/.test((await page.locator('#guess').textContent()) ?? '')
      )
      assert.deepEqual(errors, [])
      await page.context().close()
    })
  }

  it('says in one line why it does not learn a model', async () => {
    await peer.stop()
    const dir = await processes.scratch()
    const large = join(dir, 'large.yaml')
    writeFileSync(large, 'model: mlp\nhidden: [6000]\n')
    peer = await start('--shard', '1/90', '--passes', '1', '--model', large)
    const { page, errors } = await open(browser, url(), DESKTOP)
    await shown('the problem', async () => page.locator('#problem').isVisible())
    assert.equal(
      await page.locator('#problem').textContent(),
      'This network has 18.2 MB of weights, and a tab takes at most 16.0 MB, because it sends them with each update: join it with npx admb peer.'
    )
    assert.ok(await page.getByRole('button', { name: 'Join and learn' }).isDisabled())
    assert.deepEqual(errors, [])
    await page.context().close()
  })
})

/** Runs before the page's scripts: records the figures of the peer in the tab. */
const RECORD_TOTALS = `globalThis.totals = []
addEventListener('DOMContentLoaded', () => {
  const figures = document.getElementById('totals')
  const record = () => totals.push(figures.textContent)
  new MutationObserver(record).observe(figures, { subtree: true, childList: true, characterData: true })
})`

/** Runs before the page's scripts: records its WebRTC connections, the channels that others open, and STUN servers. */
const RECORD_WEBRTC = `globalThis.webRtc = { connections: [], iceServers: [] }
globalThis.RTCPeerConnection = class extends RTCPeerConnection {
  constructor(options) {
    super(options)
    webRtc.connections.push(this)
    webRtc.iceServers.push(...(options?.iceServers ?? []))
    // The channel 'init' only begins the connection. Streams of libp2p have channels without names.
    this.addEventListener('datachannel', ({ channel }) => {
      this.hasStreams ||= channel.label !== 'init'
    })
  }
}`

interface RecordedWebRtc {
  /** Whether both ends use a connection. Until then, it can still fail at one end if the relay stops. */
  readonly isLinked: boolean
  readonly iceServers: readonly unknown[]
}

async function webRtcOf(page: Page): Promise<RecordedWebRtc> {
  const isLinked = "webRtc.connections.some(one => one.connectionState === 'connected' && one.hasStreams)"
  return (await page.evaluate(`({ isLinked: ${isLinked}, iceServers: webRtc.iceServers })`)) as RecordedWebRtc
}

/** Draws a line down the middle of the pad. */
async function draw(page: Page): Promise<void> {
  const pad = page.locator('#pad')
  await pad.scrollIntoViewIfNeeded()
  const box = await pad.boundingBox()
  assert.ok(box)
  const x = box.x + box.width / 2
  await page.mouse.move(x, box.y + 0.2 * box.height)
  await page.mouse.down()
  await page.mouse.move(x + 4, box.y + 0.8 * box.height, { steps: 8 })
  await page.mouse.up()
}
