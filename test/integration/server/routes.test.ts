/** All HTTP routes of a peer, checked against its OpenAPI description. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseModel } from '../../../src/nn/spec/model-spec.js'
import { readSafetensors } from '../../../src/nn/weights/safetensors.js'
import { PeerServer, SPEC } from '../../support/http-server.js'
import { OpenApiContract } from '../../support/openapi.js'
import { until } from '../../support/peer-processes.js'

interface Predictions {
  readonly predictions: readonly { readonly label: number | string; readonly scores: readonly number[] }[]
  readonly predictor: { readonly updates: number }
}

const YES = '{"label": "yes", "features": [0, 0, 0, 1]}'
const NO = '{"label": "no", "features": [1, 0, 0, 0]}'

describe("a peer's HTTP routes", function () {
  this.timeout(60_000)
  let served: PeerServer
  let contract: OpenApiContract
  /** Number of inputs that the peer has learned. */
  let learned = 0
  before(async () => {
    served = await PeerServer.start({ bodyLimit: 10_000 })
    contract = await OpenApiContract.of(served.url)
  })
  after(() => served.stop())

  async function get(path: string, headers: Record<string, string> = {}): Promise<[Response, unknown]> {
    const answer = await fetch(served.url + path, { headers })
    return [answer, await contract.check('get', path, answer.clone())]
  }

  async function post(path: string, body: string, type?: string): Promise<[Response, unknown]> {
    const answer = await served.post(path, body, type)
    const value = await contract.check('post', path, answer.clone())
    if (path === '/learn' && answer.ok) learned += (value as Predictions).predictions.length
    return [answer, value]
  }

  it('is ready only after its first update', async () => {
    const [response, failure] = await get('/readyz')
    assert.equal(response.status, 503)
    assert.deepEqual(failure, {
      error: 'no update yet: the first update needs 2 inputs, or the end of all streams',
      code: 'ERR_NOT_READY',
      remedy: 'wait, or send inputs with POST /learn'
    })
    assert.equal((await post('/learn', `[${YES}, ${NO}]`))[0].status, 200)
    await until('the peer is ready', async () => (await get('/readyz'))[0].status === 200)
    assert.deepEqual((await get('/healthz'))[1], { ok: true })
  })

  it('returns the predictions from before learning', async () => {
    const [, first] = (await post('/predict', '{"features": [0, 0, 0, 1]}')) as [Response, Predictions]
    const [, learned] = (await post('/learn', YES)) as [Response, Predictions]
    assert.deepEqual(learned.predictions, first.predictions)
    await post('/learn', NO)
    const [, after] = (await post('/predict', '{"features": [0, 0, 0, 1]}')) as [Response, Predictions]
    assert.ok(after.predictions[0].scores[1] > first.predictions[0].scores[1])
  })

  it('accepts the same input as JSON, JSON lines and LIBSVM', async () => {
    const bodies: [string, string][] = [
      ['{"features": {"3": 1}}', 'application/json'],
      ['{"features": {"3": 1}}', 'application/json; charset=utf-8'],
      ['[{"features": {"3": 1}}]', 'application/json'],
      ['{"features": {"3": 1}}', 'application/x-ndjson'],
      ['4:1', 'text/x-libsvm']
    ]
    const answers = await Promise.all(bodies.map(([body, type]) => post('/predict', body, type)))
    for (const [answer, body] of answers) {
      assert.equal(answer.status, 200)
      assert.deepEqual(body, answers[0][1])
    }
  })

  it('reads the digits of JSON as they are, and the last value of a repeated key, in both forms of JSON', async () => {
    const columns = [
      { name: 'order', kind: 'number', role: 'id' },
      { name: 'x', kind: 'number', mean: 0, deviation: 1 },
      { name: 'zone', kind: 'category' }
    ] as const
    const features = { ...SPEC.features, columns, classNames: undefined, hashBits: undefined }
    const table = await PeerServer.start({}, { spec: { ...SPEC, dimension: 1 + 2 ** 18, features } as typeof SPEC })
    try {
      const rows = [
        '{"order": 9007199254740993, "x": 1.5, "zone": 2}',
        '{"x": 0, "x": 1.5, "zone": 2.0, "order": "9007199254740993"}',
        '{\n"order":9007199254740993,"x":9,"zone":"2",\r\n"x":1.5e0}',
        '{"order": "a, \\"]}[{", "x": -2, "zone": "1, 2"}'
      ]
      const plain = rows.map(row => row.replaceAll(/[\r\n]+/g, ' '))
      await table.post(
        '/learn',
        '{"x": 1.5, "zone": 2, "label": 1}\n{"x": -1, "zone": 3, "label": 0}\n',
        'application/x-ndjson'
      )
      const answers = await Promise.all([
        table.post('/predict', `[${rows.join(',\n ')}]`, 'application/json'),
        table.post('/predict', plain.join('\n'), 'application/x-ndjson')
      ])
      const [json, lines] = (await Promise.all(answers.map(answer => answer.json()))) as Predictions[]
      assert.deepEqual(json, lines)
      const [first, ...same] = json.predictions as unknown as { rowId?: string; scores: number[] }[]
      assert.equal(first.rowId, '9007199254740993')
      for (const { scores } of same.slice(0, 2)) assert.deepEqual(scores, first.scores)
      assert.equal(same[2].rowId, 'a, "]}[{')
      const one = (await (await table.post('/predict', rows[2], 'application/json')).json()) as Predictions
      assert.deepEqual(one.predictions[0], json.predictions[2])
    } finally {
      await table.stop()
    }
  })

  it('accepts VW lines only if features are hashed', async () => {
    const refused = await post('/learn', 'yes | a:1', 'text/x-vw')
    assert.equal(refused[0].status, 400)
    assert.match((refused[1] as { error: string }).error, /--hash-bits/)
    const features = { ...SPEC.features, hashBits: 8, constant: true, classNames: undefined }
    const hashed = await PeerServer.start({}, { spec: { ...SPEC, dimension: 257, features } as typeof SPEC })
    try {
      const answer = await hashed.post('/learn', '1 | price:0.5 red\n-1 | price:2 blue\n', 'text/x-vw')
      const { predictions } = (await contract.check('post', '/learn', answer)) as Predictions
      assert.equal(predictions.length, 2)
    } finally {
      await hashed.stop()
    }
  })

  it('learns a request with a key once, and answers a repeated one as the first', async () => {
    const send = (key: string, body = `[${YES}, ${NO}]`, type?: string) =>
      served.post('/learn', body, type, { 'idempotency-key': key })
    const answers = await Promise.all([send('"order-7"'), send('order-7')])
    answers.push(await send('"order-7"'))
    const texts = await Promise.all(answers.map(answer => answer.text()))
    assert.deepEqual(texts, [texts[0], texts[0], texts[0]])
    learned += 2
    // What is refused can be sent again, and each number is a request of its own.
    assert.equal((await send('split:a:1', '[3]')).status, 400)
    for (const number of [2, 1, 2, 1]) assert.equal((await send(`split:a:${number}`, YES)).status, 200)
    learned += 2
    // Answers of long ago are new predictions.
    for (let i = 0; i < 20; i++) await send(`later-${i}`, NO)
    learned += 20
    const again = (await contract.check('post', '/learn', await send('order-7'))) as Predictions
    assert.equal(again.predictions.length, 2)
    for (const key of ['""', '', 'k'.repeat(200)]) assert.equal((await send(key)).status, 400, key)
    await post('/learn', YES)
    await until('the status counts the last input', () => served.peer.status().inputs >= learned)
    assert.equal(served.peer.status().inputs, learned)
  })

  it('reads CSV with a header, whose separator the content type names', async () => {
    const columns = [{ name: 'a' }, { name: 'b' }].map(({ name }) => ({ name, kind: 'number' }) as const)
    const features = { ...SPEC.features, label: 'label', columns }
    const table = await PeerServer.start({}, { spec: { ...SPEC, dimension: 2, features } })
    try {
      const predictions = async (body: string, type: string) => {
        const answer = await table.post('/predict', body, type)
        return ((await contract.check('post', '/predict', answer)) as Predictions).predictions
      }
      assert.equal(
        (await table.post('/learn', 'b;label;a\n"1,5";yes;2\n', 'text/csv; delimiter=semicolon')).status,
        200
      )
      assert.equal((await table.post('/learn', 'a,b,label\n1,2,no\n', 'text/csv')).status, 200)
      const [first] = await predictions('{"a": 3, "b": -1}', 'application/json')
      assert.deepEqual(await predictions('b|a\n-1|3\n', 'text/csv;delimiter=pipe'), [first])
      assert.equal((await table.post('/learn', 'a,b\n1,2\n', 'text/csv; delimiter=x')).status, 415)
    } finally {
      await table.stop()
    }
  })

  it('answers a request without inputs', async () => {
    for (const path of ['/predict', '/learn']) {
      const [{ status }, value] = await post(path, '# a comment\n', 'text/x-libsvm')
      assert.deepEqual([status, (value as Predictions).predictions], [200, []])
    }
  })

  it('rejects invalid bodies with one form of error, and learns nothing from them', async () => {
    const bad: [body: string, type: string, status: number, code: string][] = [
      ['', 'application/json', 400, 'ERR_JSON'],
      ['{"label": "yes"', 'application/json', 400, 'ERR_JSON'],
      ['{"__proto__": {"label": "yes"}}', 'application/json', 400, 'ERR_JSON'],
      ['"yes"', 'application/json', 400, 'ERR_REQUEST'],
      ['[3]', 'application/json', 400, 'ERR_REQUEST'],
      ['[]', 'application/json', 400, 'ERR_REQUEST'],
      ['{"label": "perhaps", "features": [0, 0, 0, 1]}', 'application/json', 400, 'ERR_REQUEST'],
      ['1 4:one', 'text/x-libsvm', 400, 'ERR_REQUEST'],
      ['label=yes', 'application/x-www-form-urlencoded', 415, 'ERR_MEDIA_TYPE'],
      [YES, 'text/plain', 415, 'ERR_MEDIA_TYPE'],
      [`[${Array(400).fill(YES).join(',')}]`, 'application/json', 413, 'ERR_BODY_TOO_LARGE']
    ]
    for (const [body, type, status, code] of bad) {
      const [answer, failure] = await post('/learn', body, type)
      assert.equal(answer.status, status, body)
      assert.equal((failure as { code: string }).code, code, body)
    }
    // The status may be older than the last request, unless it counts this input.
    await post('/learn', YES)
    await until('the status counts the last input', () => served.peer.status().inputs >= learned)
    assert.equal(served.peer.status().inputs, learned)
  })

  it('returns its predictor as a safetensors file, with an ETag for each version', async () => {
    const [answer, body] = await get('/predictor')
    const dir = await mkdtemp(join(tmpdir(), 'admb-test-'))
    try {
      const file = join(dir, 'predictor.safetensors')
      await writeFile(file, Buffer.from(body as ArrayBuffer))
      const tensors = readSafetensors(file)
      assert.deepEqual([...tensors.keys()], ['weights'])
      assert.deepEqual(tensors.get('weights')?.shape, [4])
      const [, , , weight] = tensors.get('weights')?.read() ?? []
      const [, { predictions }] = (await post('/predict', '{"features": [0, 0, 0, 1]}')) as [Response, Predictions]
      assert.ok(Math.abs(1 / (1 + Math.exp(-weight)) - predictions[0].scores[1]) < 1e-6)
    } finally {
      await rm(dir, { recursive: true })
    }
    assert.match(
      answer.headers.get('content-disposition') ?? '',
      /filename="admb-logistic-\d+-[0-9a-f]{8}.safetensors"/
    )
    const etag = answer.headers.get('etag') as string
    assert.equal((await get('/predictor', { 'if-none-match': etag }))[0].status, 304)
    await post('/learn', `[${YES}, ${NO}]`)
    const next = (await get('/predictor', { 'if-none-match': etag }))[0]
    assert.equal(next.status, 200)
    assert.notEqual(next.headers.get('etag'), etag)
  })

  it('limits the number of downloads in progress', async () => {
    const downloads = []
    for (let i = 0; i < 16; i++) downloads.push(await served.peer.download())
    const [refused, failure] = await get('/predictor')
    assert.equal(refused.status, 503)
    assert.match((failure as { error: string }).error, /16 downloads are in progress: try again later/)
    for (const { cancel } of downloads) cancel()
    assert.equal((await get('/predictor'))[0].status, 200)
  })

  it('ends the downloads of clients that disconnect, ask for the head only, or have the file', async () => {
    const etag = (await get('/predictor'))[0].headers.get('etag') as string
    for (let i = 0; i < 40; i++) {
      const signal = AbortSignal.timeout(i % 4)
      await fetch(`${served.url}/predictor`, { signal }).catch(() => undefined)
      await fetch(`${served.url}/predictor`, { method: 'HEAD' })
      await get('/predictor', { 'if-none-match': etag })
    }
    const unread = await served.peer.download()
    await unread.chunks[Symbol.asyncIterator]().return?.()
    await until('another download is possible', async () => (await get('/predictor'))[0].status === 200)
    // None of them holds one of the sixteen places.
    const downloads = await Promise.all(Array.from({ length: 16 }, () => served.peer.download()))
    for (const { cancel } of downloads) cancel()
  })

  it('names the layers of a network', async () => {
    const network = {
      layers: parseModel({ model: 'mlp', hidden: [3] }, 'the test'),
      sample: { kind: 'features', shape: [4] },
      target: { kind: 'class', classes: 2 }
    } as const
    const { dimension, averaging, batch, features } = SPEC
    const spec = { model: 'network', network, rule: { name: 'adam' }, dimension, averaging, batch, features } as const
    const other = await PeerServer.start({}, { spec, execution: { backend: 'cpu' } })
    try {
      const bytes = Buffer.from(await (await fetch(`${other.url}/predictor`)).arrayBuffer())
      const header = JSON.parse(bytes.subarray(8, 8 + Number(bytes.readBigUInt64LE())).toString())
      assert.deepEqual(header['output.kernel'].shape, [3, 2])
      assert.equal(JSON.parse(header.__metadata__.spec).network.layers.model, 'mlp')
    } finally {
      await other.stop()
    }
  })

  it('exports the values of its status for Prometheus', async () => {
    await until('the last status', () => served.peer.status().inputs === learned)
    const [, text] = await get('/metrics')
    const lines = Buffer.from(text as ArrayBuffer)
      .toString()
      .split('\n')
    const value = (name: string) => Number(lines.find(line => line.startsWith(`${name} `))?.split(' ')[1])
    const { inputs, updates, averageLoss } = served.peer.status()
    assert.equal(value('admb_inputs_total'), inputs)
    assert.ok(value('admb_recent_loss_nats{window="1000"}') >= 0)
    assert.equal(value('admb_predictor_updates'), updates)
    assert.ok(Math.abs(value('admb_loss_nats_total') - averageLoss * inputs) < 1e-6)
    for (const kind of ['sums', 'steps', 'predictors', 'other'])
      assert.equal(value(`admb_sum_bytes_total{kind="${kind}"}`), served.peer.status().sent.kinds[kind as 'sums'])
    assert.ok(value('process_resident_memory_bytes') > 1e6)
    assert.ok(lines.some(line => /^admb_http_request_duration_seconds_count.*route="\/learn"/.test(line)))
  })

  it('describes every route, each of which is tested here', async () => {
    await get('/status')
    await get('/openapi.json')
    const described = Object.entries(contract.description.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map(method => `${method} ${path}`)
    )
    const tested = new Set([...contract.seen].map(key => key.replace(/ \d+$/, '')))
    const routes = ['/status', '/predict', '/learn', '/predictor', '/healthz', '/readyz', '/metrics', '/openapi.json']
    assert.deepEqual(
      routes.filter(path => !described.some(key => key.endsWith(` ${path}`))),
      []
    )
    const untested = described.filter(key => routes.includes(key.split(' ')[1]) && !tested.has(key))
    assert.deepEqual(untested, [])
    for (const key of described) {
      const [method, path] = key.split(' ')
      const { responses } = contract.description.paths[path][method]
      assert.ok(responses['200'], `${key} describes no answer`)
    }
  })
})
