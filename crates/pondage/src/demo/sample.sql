-- A small shop, the same in every run: nothing here is random.

CREATE TABLE customers (
    customer_id int PRIMARY KEY,
    name text NOT NULL,
    email text NOT NULL UNIQUE,
    city text NOT NULL,
    joined date NOT NULL
);

CREATE TABLE products (
    product_id int PRIMARY KEY,
    name text NOT NULL,
    price numeric(10, 2) NOT NULL,
    stock int NOT NULL
);

CREATE TABLE orders (
    order_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    customer_id int NOT NULL REFERENCES customers,
    product_id int NOT NULL REFERENCES products,
    quantity int NOT NULL CHECK (quantity > 0),
    total numeric(12, 2) NOT NULL,
    ordered_at timestamptz NOT NULL
);

INSERT INTO customers
SELECT i, 'Customer ' || i, 'customer' || i || '@example.com',
       (ARRAY['Graz', 'Linz', 'Salzburg', 'Innsbruck', 'Bregenz', 'Wien'])[1 + i * 7 % 6],
       date '2024-01-01' + i % 700
FROM generate_series(1, 1000) AS i;

INSERT INTO products
SELECT i, (ARRAY['Turbine', 'Sluice', 'Weir', 'Penstock', 'Gauge'])[1 + i % 5] || ' ' || i,
       (5 + i * 37 % 995)::numeric / 2, 10 + i * 13 % 90
FROM generate_series(1, 200) AS i;

INSERT INTO orders (customer_id, product_id, quantity, total, ordered_at)
SELECT customer_id, product_id, quantity, quantity * price,
       timestamptz '2025-01-01 00:00+00' + i * interval '97 minutes'
FROM (SELECT i, 1 + i * 613 % 1000 AS customer_id, 1 + i * 31 % 200 AS product_id,
             1 + i % 5 AS quantity
      FROM generate_series(1, 5000) AS i) AS o
JOIN products USING (product_id);

CREATE INDEX ON orders (customer_id);
CREATE INDEX ON orders (ordered_at);

-- pgbench's tables at scale 1, so that it runs without -i.
-- Source: PostgreSQL documentation, "pgbench", "What Is the “Transaction” Actually Performed in pgbench?".

CREATE TABLE pgbench_branches (bid int PRIMARY KEY, bbalance int, filler char(88)) WITH (fillfactor = 100);
CREATE TABLE pgbench_tellers (tid int PRIMARY KEY, bid int, tbalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_accounts (aid int NOT NULL, bid int, abalance int, filler char(84)) WITH (fillfactor = 100);
CREATE TABLE pgbench_history (tid int, bid int, aid int, delta int, mtime timestamp, filler char(22));

INSERT INTO pgbench_branches VALUES (1, 0, NULL);
INSERT INTO pgbench_tellers SELECT i, 1, 0, NULL FROM generate_series(1, 10) AS i;
INSERT INTO pgbench_accounts SELECT i, 1, 0, '' FROM generate_series(1, 100000) AS i;
ALTER TABLE pgbench_accounts ADD PRIMARY KEY (aid);
