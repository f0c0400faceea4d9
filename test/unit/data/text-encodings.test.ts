/** Texts in other encodings than UTF-8: named, and read by an option or by their byte order mark. */
import assert from 'node:assert/strict'
import { gzipSync } from 'node:zlib'
import { openStream } from '../../../src/data/open.js'
import { plainStream, withFiles } from '../../support/streams.js'

/** Encoders of TextDecoder's encodings, by decoding every byte or pair of bytes. */
function encoded(text: string, encoding: string, pairs: boolean): Buffer {
  const decoder = new TextDecoder(encoding, { fatal: true })
  const table = new Map<string, number[]>()
  const add = (bytes: number[]) => {
    try {
      const character = decoder.decode(Uint8Array.from(bytes))
      if ([...character].length === 1 && !table.has(character)) table.set(character, bytes)
    } catch {}
  }
  for (let a = 0; a < 256; a++) {
    add([a])
    if (pairs && a >= 0x80) for (let b = 0x40; b < 256; b++) add([a, b])
  }
  return Buffer.from([...text].flatMap(character => table.get(character) ?? assert.fail(character)))
}

const table = (words: readonly string[]) =>
  `text,label\n${words
    .map((word, i) => `${word},${i % 2}\n`)
    .join('')
    .repeat(10)}`
const words = {
  'windows-1252': ['crème brûlée', 'pêche et pomme', 'à la carte', 'naïve façade'],
  'windows-1251': ['большой дом у реки', 'новая машина', 'хорошая погода сегодня', 'плохой сон'],
  'koi8-r': ['большой дом у реки', 'новая машина', 'хорошая погода сегодня', 'плохой сон'],
  shift_jis: ['これはとてもいい', 'とてもわるいです', '部屋はきれいでした', 'もう行きません'],
  gb18030: ['房间很满意', '服务员不推荐', '手机屏幕非常好', '这部电影很失望'],
  'euc-kr': ['방이 아주 좋습니다', '서비스가 나쁩니다', '영화가 재미있어요', '다시 가지 않습니다'],
  big5: ['房間很滿意', '服務員不推薦', '手機螢幕非常好', '這部電影很失望']
}

describe('text in another encoding', () => {
  for (const [encoding, texts] of Object.entries(words)) {
    it(`is named and read: ${encoding}`, async () => {
      await withFiles(async write => {
        const bytes = encoded(table(texts), encoding, !/^(windows|koi8)/.test(encoding))
        const data = await write('a.csv', bytes)
        await assert.rejects(openStream({ data }), {
          name: 'EncodingError',
          message: new RegExp(`a\\.csv:2: the text is not UTF-8, and ${encoding} fits: give --encoding ${encoding}`)
        })
        const expected = await plainStream(await openStream({ data: await write('b.csv', table(texts)) }))
        assert.deepEqual(await plainStream(await openStream({ data, encoding })), expected)
        const compressed = await write('c.csv.gz', gzipSync(bytes))
        assert.deepEqual(await plainStream(await openStream({ data: compressed, encoding })), expected)
      })
    })
  }

  it('is read as UTF-16 by its byte order mark', async () => {
    await withFiles(async write => {
      const text = table(words['windows-1252'])
      const expected = await plainStream(await openStream({ data: await write('a.csv', text) }))
      const little = Buffer.from(`\ufeff${text}`, 'utf16le')
      const files = { 'le.csv': little, 'be.csv': Buffer.from(little).swap16(), 'le.csv.gz': gzipSync(little) }
      for (const [name, bytes] of Object.entries(files)) {
        const data = await write(name, bytes)
        const stream = await openStream({ data })
        const rows = []
        let resume: unknown
        for await (const batch of stream) {
          rows.push(batch.size)
          resume ??= batch.positionAfter?.(1)
        }
        assert.deepEqual(await plainStream(await openStream({ data })), expected, name)
        const rest = await plainStream(await openStream({ data, resume: resume as number }))
        assert.deepEqual(rest, expected.slice(1), `${name} after its first row`)
      }
      const unmarked = await write('unmarked.csv', Buffer.from(text, 'utf16le'))
      await assert.rejects(openStream({ data: unmarked }), /and utf-16le fits/)
      assert.deepEqual(await plainStream(await openStream({ data: unmarked, encoding: 'utf-16le' })), expected)
    })
  })

  it('is read with replaced characters if asked, and reported where it begins late', async () => {
    await withFiles(async write => {
      const broken = Buffer.concat([Buffer.from('x,label\n1,0\n'), Buffer.from([0xff]), Buffer.from(',1\n')])
      const data = await write('a.csv', broken)
      await assert.rejects(openStream({ data }), /a\.csv:3: the text is not UTF-8/)
      assert.equal(
        (await plainStream(await openStream({ data, encoding: 'utf-8', schema: [{ name: 'x', kind: 'category' }] })))
          .length,
        2
      )
      await assert.rejects(openStream({ data, encoding: 'utf-99' }), /encoding 'utf-99' is not known/)
      await assert.rejects(openStream({ data, encoding: 'utf-8', follow: true }), /follow reads UTF-8/)
      const notices: string[] = []
      const late = Buffer.concat([
        Buffer.from(`x,label\n${'été,0\n'.repeat(40_000)}`),
        Buffer.from('\u00e9t\u00e9,1\n'.repeat(9), 'latin1')
      ])
      const stream = await openStream({ data: await write('late.csv', late), onNotice: line => notices.push(line) })
      assert.equal((await plainStream(stream)).length, 40_009)
      assert.equal(notices.length, 1)
      assert.match(notices[0], /late\.csv: from about line \d+ on, some text is not UTF-8: give its --encoding/)
    })
  })
})
