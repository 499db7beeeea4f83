-- What Redis clients find in the small shop, written by SQL.

SELECT redis.hset('customer:' || customer_id, 'name', name),
       redis.hset('customer:' || customer_id, 'city', city)
FROM customers WHERE customer_id <= 100;

SELECT redis.zadd('best', sum(total)::float8, 'customer:' || customer_id)
FROM orders GROUP BY customer_id ORDER BY sum(total) DESC LIMIT 100;

SELECT redis.sadd('cities', city) FROM (SELECT DISTINCT city FROM customers) AS cities;

SELECT redis.rpush('parcels', 'order:' || order_id)
FROM orders ORDER BY ordered_at DESC LIMIT 10;

SELECT redis.set('visits', '0');
