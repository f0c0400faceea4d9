/** Small files as people have them: with every separator, notation and gap, and what must come of each. */

export interface MessyFile {
  readonly name: string
  readonly content: string
  /** Options of `admb train` besides the data. */
  readonly options?: readonly string[]
  /** What standard output must say, or the one line on standard error. */
  readonly result: RegExp
  readonly fails?: true
}

interface Person {
  readonly age: number
  readonly income: number
  readonly city: string
  readonly bought: 'no' | 'yes'
}

/** Rows in which income and city decide. */
const people: readonly Person[] = Array.from({ length: 400 }, (_, i) => {
  const income = 1000 + ((i * 7919) % 4000)
  const city = ['Bern', 'Oslo', 'Rome'][i % 3]
  const isRich = income + (city === 'Bern' ? 800 : 0) > 3200
  return { age: 20 + ((i * 31) % 50), income: income + 0.25, city, bought: isRich ? 'yes' : 'no' }
})

const HEADER = ['age', 'income', 'city', 'bought']

/** A table of the people. */
function table(
  separator: string,
  cell: (person: Person, row: number) => readonly (string | number)[] = ({ age, income, city, bought }) => [
    age,
    income,
    city,
    bought
  ],
  header: readonly string[] | null = HEADER
): string {
  const rows = people.map((person, row) => cell(person, row).join(separator))
  return `${header === null ? '' : `${header.join(separator)}\n`}${rows.join('\n')}\n`
}

const bought = ['--label', 'bought']
/** Better than the share of the larger class. */
const LEARNED = /accuracy +(8[5-9]|9\d)\./
const numbers = ({ age, income, city, bought }: Person) => [age, income, city, bought === 'yes' ? 1 : 0]

export const messyFiles: readonly MessyFile[] = [
  { name: 'plain.csv', content: table(','), options: bought, result: LEARNED },
  { name: 'semicolons.csv', content: table(';'), options: bought, result: LEARNED },
  { name: 'tabs.tsv', content: table('\t'), options: bought, result: LEARNED },
  {
    name: 'decimal-comma.csv',
    content: table(';', ({ age, income, city, bought }) => [age, String(income).replace('.', ','), city, bought]),
    options: bought,
    result: /2 numbers, 1 category[\s\S]*accuracy +(8[5-9]|9\d)\./
  },
  {
    name: 'quoted.csv',
    content: table(',', ({ age, income, city, bought }) => [`"${age}"`, `"${income}"`, `"${city}, ""C"""`, bought]),
    options: bought,
    result: /2 numbers, 1 category[\s\S]*accuracy +(8[5-9]|9\d)\./
  },
  {
    name: 'missing.csv',
    content: table(',', ({ age, income, city, bought }, row) => {
      const gap = ['', 'NA', '?', 'null', 'NaN'][row % 5]
      return [row % 7 === 0 ? gap : age, income, row % 11 === 0 ? gap : city, bought]
    }),
    options: bought,
    result: /2 numbers, 1 category; missing: 14\.\d % of age, 9\.\d % of city[\s\S]*inputs +400\n[\s\S]*accuracy +(8|9)/
  },
  {
    name: 'other-missing.csv',
    content: table(',', ({ age, income, city, bought }, row) => [row % 40 === 0 ? 'n.a.' : age, income, city, bought]),
    options: bought,
    result: /missing: 2\.5 % of age/
  },
  {
    name: 'one-label-missing.csv',
    content: table(',', ({ age, income, city, bought }, row) => [age, income, city, row === 9 ? '' : bought]),
    options: bought,
    result: /inputs +399 \(1 malformed/
  },
  {
    name: 'no-header.csv',
    content: table(',', undefined, null),
    options: ['--label', '4'],
    result: /the first line is a row, not the names of the columns .* give --no-header/,
    fails: true
  },
  {
    name: 'no-header-given.csv',
    content: table(',', undefined, null),
    options: ['--no-header', '--label', '4'],
    result: LEARNED
  },
  {
    name: 'minus-one.csv',
    content: table(',', ({ age, income, city, bought }) => [age, income, city, bought === 'yes' ? 1 : -1]),
    options: bought,
    result: /label "bought": 2 classes by number[\s\S]*accuracy +(8[5-9]|9\d)\./
  },
  {
    name: 'header-only.csv',
    content: `${HEADER.join(',')}\n`,
    options: bought,
    result: /there are no inputs/,
    fails: true
  },
  { name: 'empty.csv', content: '', options: bought, result: /there are no inputs/, fails: true },
  {
    name: 'times.csv',
    content: table(',', ({ income, city, bought }, row) => [
      `2024-0${1 + (row % 9)}-1${row % 10} 1${row % 10}:30`,
      income,
      city,
      bought
    ]),
    options: bought,
    result: /1 number, 1 category, 1 time[\s\S]*accuracy +(8[5-9]|9\d)\./
  },
  {
    name: 'reviews.csv',
    content: `review,liked\n${people
      .map(
        ({ bought, age }) =>
          `"It was ${bought === 'yes' ? 'a very good' : 'such a bad'} film, ${age} minutes long",${bought}`
      )
      .join('\n')}\n`,
    options: ['--label', 'liked'],
    result: /1 text[\s\S]*accuracy +9/
  },
  {
    name: 'truncated.jsonl',
    content: `${people.map(person => JSON.stringify({ ...person, label: numbers(person)[3] })).join('\n')}\n{"label": 1, "a`,
    result: /inputs +400 \(1 malformed/
  }
]
