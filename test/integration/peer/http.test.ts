/** The HTTP API of a peer process, and `admb status`. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { request } from 'node:http'
import { promisify } from 'node:util'
import { LEARNERS, MAIN, type PeerProcess, PeerProcesses, until } from '../../support/peer-processes.js'

interface Answer {
  readonly error?: string
  readonly code?: string
  readonly remedy?: string
  readonly predictions: readonly { readonly label: number | string; readonly scores: readonly number[] }[]
  readonly predictor: { readonly updates: number }
}

for (const learner of LEARNERS)
  describe(`a peer with ${learner} over HTTP`, function () {
    this.timeout(60_000)
    const processes = new PeerProcesses()
    let peer: PeerProcess
    /** Number of inputs that the tests send to be learned. */
    const LEARNED = 44

    before(async () => {
      peer = await processes
        .start(
          '--dimension',
          '4',
          '--class-names',
          'no,yes',
          '--batch',
          '2',
          ...(await processes.modelOptions(learner))
        )
        .ready()
    })
    after(() => processes.stop())

    async function post(action: string, body: string, type = 'application/json') {
      const url = `${peer.latest.http}/${action}`
      const response = await fetch(url, { method: 'POST', body, headers: { 'content-type': type } })
      return { code: response.status, answer: (await response.json()) as Answer }
    }

    it('reports its health and its status', async () => {
      const health = await fetch(`${peer.latest.http}/healthz`)
      assert.deepEqual(await health.json(), { ok: true })
      const status = await peer.fetchStatus()
      assert.equal(status.id, peer.latest.id)
      assert.deepEqual(status.addresses, peer.latest.addresses)
    })

    it('learns an object, an array and JSON lines, and predicts with the result', async () => {
      const yes = { label: 'yes', features: { 3: 1 } }
      const no = { label: 'no', features: [1, 0, 0, 0] }
      assert.equal((await post('learn', JSON.stringify(yes))).code, 200)
      assert.equal((await post('learn', JSON.stringify([no, yes, no]))).code, 200)
      const lines = [yes, no].map(input => JSON.stringify(input)).join('\n')
      const last = await post('learn', lines.repeat(20).replaceAll('}{', '}\n{'), 'application/x-ndjson')
      assert.equal(last.code, 200)
      assert.equal(last.answer.predictions.length, 40)
      assert.ok(last.answer.predictor.updates >= 20)

      const { code, answer } = await post(
        'predict',
        JSON.stringify([{ features: { 3: 1 } }, { features: [1, 0, 0, 0] }])
      )
      assert.equal(code, 200)
      assert.deepEqual(
        answer.predictions.map(({ label }) => label),
        ['yes', 'no']
      )
      for (const { scores } of answer.predictions) {
        assert.equal(scores.length, 2)
        assert.ok(Math.abs(scores[0] + scores[1] - 1) < 1e-6)
      }
      assert.equal(answer.predictor.updates, last.answer.predictor.updates)
    })

    it('reports what is wrong with a request, and learns nothing from it', async () => {
      const wrong: [body: string, type: string | undefined, code: number, error: RegExp][] = [
        ['{"label": "maybe", "features": {"3": 1}}', undefined, 400, /request:1:\d+: label "maybe" is not among/],
        ['{"features": {"3": 1}}', undefined, 400, /the label is missing \(key "label"\)/],
        ['{"label": "yes", "features": {"4": 1}}', undefined, 400, /"4" is not a feature number from 0 to 3/],
        ['{"label": "yes", "features": {"colour": 1}}', undefined, 400, /"colour" is not a feature number from 0 to 3/],
        ['{"label": "yes", "features": {"1": "red"}}', undefined, 400, /a string can be a feature only if .* hashed/],
        ['{"label": "yes", "features": [1, 2]}', undefined, 400, /an array of 2 features, expected 4/],
        ['{"label": "yes", "features": [1, 2, 3, 1e39]}', undefined, 400, /finite float32/],
        ['{"label": "yes", "features": [1, 2, 3, NaN]}', 'application/jsonl', 400, /request:1:40: /],
        ['{"label": "yes"', undefined, 400, /JSON/],
        ['3', undefined, 400, /the body is not an input: send an input as a JSON object/],
        ['[]', undefined, 400, /the body is not an input: send an input as a JSON object/],
        ['label=yes', 'text/plain', 415, /set the content-type: application\/json/],
        ['<label>', 'application/xml', 415, /./]
      ]
      for (const [body, type, code, error] of wrong) {
        const result = await post('learn', body, type)
        assert.equal(result.code, code, `${body}: ${JSON.stringify(result.answer)}`)
        assert.match(`${result.answer.error}: ${result.answer.remedy}`, error)
        assert.match(result.answer.code ?? '', /^ERR_/)
      }
      const good = '{"label": "yes", "features": [1, 2, 3, 4]}'
      const half = await post('learn', `${good}\n{"label": "yes", "features": [1]}`, 'application/jsonl')
      assert.equal(half.code, 400)
      // The status may be older than the last request, unless it counts this input.
      assert.equal((await post('learn', good)).code, 200)
      await until(
        'the status counts what was learned last',
        async () => (await peer.fetchStatus()).inputs >= LEARNED + 1
      )
      assert.equal((await peer.fetchStatus()).inputs, LEARNED + 1)
    })

    it('rejects bodies that are too large, and unknown routes', async () => {
      // The announced content length suffices for the answer, so nothing large is sent.
      const refused = await new Promise<{ code: number | undefined; text: string }>((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': 9 * 1024 * 1024 }
        const announced = request(`${peer.latest.http}/learn`, { method: 'POST', headers }, response => {
          let text = ''
          response.on('data', part => {
            text += part
          })
          response.on('end', () => {
            announced.destroy()
            resolve({ code: response.statusCode, text })
          })
        })
        announced.on('error', reject)
        announced.write('[')
      })
      assert.equal(refused.code, 413)
      assert.match((JSON.parse(refused.text) as Answer).error ?? '', /large/i)
      const unknown = await post('lern', '{}')
      assert.equal(unknown.code, 404)
      assert.match(unknown.answer.error ?? '', /no such route: POST \/lern/)
    })

    it('stops although a client keeps its connection open', async () => {
      const idle = await processes.start('--dimension', '4').ready()
      const held = request(`${idle.latest.http}/learn`, { method: 'POST' })
      held.on('error', () => undefined)
      held.write('{"label":')
      await idle.fetchStatus()
      assert.equal(await idle.stop(), 0)
    })

    it('responds to admb status', async () => {
      const run = promisify(execFile)
      const at = (peer.latest.http as string).replace('http://', '')
      const { stdout } = await run(process.execPath, [MAIN, 'status', '--http', at, '--json'])
      const { command, id } = JSON.parse(stdout)
      assert.deepEqual({ command, id }, { command: 'status', id: peer.latest.id })
      const text = await run(process.execPath, [MAIN, 'status', '--http', at])
      assert.match(text.stdout, /^peer +12D3Koo/)
    })
  })
